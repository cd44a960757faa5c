/** Return whether a number of milliseconds is a time that a Date can be: those after the year 275760 are not. */
export function isTime(ms: number): boolean {
  return Number.isFinite(new Date(ms).getTime());
}

/** Return a time as it is read at this place, to the second; one that no Date can be as its milliseconds. */
export function time(ms: number): string {
  if (!isTime(ms)) return `${ms} ms`;
  return new Date(ms).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

/** Return the beginning of a text, and whether it is longer by an ellipsis: characters stay whole. most: UTF-16 units. */
export function cut(whole: string, most: number, end = " …"): string {
  if (whole.length <= most) return whole;
  const last = whole.charCodeAt(most - 1);
  // The first half of a character of four bytes is nothing alone: a server refuses it.
  return whole.slice(0, last >= 0xd800 && last < 0xdc00 ? most - 1 : most) + end;
}

/** The characters of a text that a list shows of it. */
export const LISTED = 600;

/** The time zone in which times are shown. */
export const ZONE = new Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Return how long something took: `12 ms`, `3.4 s`, `5 min`, `2.1 h`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 120_000) return `${(ms / 1_000).toFixed(1)} s`;
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min`;
  return `${(ms / 3_600_000).toFixed(1)} h`;
}

/** Return a value as text: text as it is, anything else as JSON. */
export function text(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** Return a cost as text, to the digits that it needs. */
export function cost(of: { value: number; currency: string } | null | undefined): string {
  if (!of) return "no price";
  return `${of.value.toLocaleString(undefined, { maximumSignificantDigits: 3 })} ${of.currency}`;
}

/** Return a number with its noun: `1 turn`, `2,000 turns`. */
export function counted(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString()} ${number === 1 ? one : many}`;
}

/** Return the name of a field as words. */
export function words(name: string): string {
  return name.replaceAll("_", " ");
}
