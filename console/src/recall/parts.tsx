/** A score as one bar: a piece for each part that adds to it, and below it what each part is. */
export function Parts({ of }: { of: Record<string, number> }) {
  const parts = Object.entries(of).filter(([, value]) => value !== 0);
  const added = parts.filter(([, value]) => value > 0);
  const whole = Math.max(1, added.reduce((sum, [, value]) => sum + value, 0));
  let from = 0;
  return (
    <div class="parts">
      <svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
        {added.map(([name, value], at) => {
          const x = from;
          from += (value / whole) * 100;
          return <rect key={name} class={`part-${at % 8}`} x={x} width={(value / whole) * 100} y="0" height="4" />;
        })}
      </svg>
      <ul>
        {parts.map(([name, value]) => (
          <li key={name}><span class={`key part-${added.findIndex(([one]) => one === name) % 8}`} /> {name} {value.toFixed(3)}</li>
        ))}
      </ul>
    </div>
  );
}
