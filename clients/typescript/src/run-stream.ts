import { noAnswer, notRetains, objectOf, RetainError } from "./errors.js";
import { piecesOf } from "./pieces.js";
import { afterFailure, type Retries, sleep } from "./retries.js";
import type { Schemas } from "./schemas.js";
import { eventsOf, isStream, resultOf, type StreamedEvent } from "./server-events.js";

/** How a stream connects: to a run that begins, or to one that is known. Answers as `fetch` does. */
export interface Connections {
  begin?: (lastEventId: string | undefined) => Promise<Response>;
  follow: (instanceId: string, runId: string, lastEventId: string | undefined) => Promise<Response>;
}

/**
 * What happens in a run, from its beginning or after an event, until it has ended.
 *
 * When the connection breaks, the stream continues after the last event that arrived. Only pieces of text (`text.delta`)
 * may be missing then: `text.completed` has the whole.
 */
export class RunStream implements AsyncIterable<StreamedEvent> {
  /** Of the run, once known. */
  runId: string | undefined;
  instanceId: string | undefined;
  /** With it another stream continues after this one. */
  lastEventId: string | undefined;
  /** Of the run, once it has ended. */
  result: Schemas["RunResult"] | undefined;
  private failures = 0;

  constructor(
    private readonly connections: Connections,
    private readonly retries: Retries,
    private readonly silenceS: number,
    private readonly signal: AbortSignal | undefined,
  ) {}

  /** Yield the events. Throws a RetainError when the run is refused, or is no longer reached. */
  async *[Symbol.asyncIterator](): AsyncGenerator<StreamedEvent, void, undefined> {
    for (;;) {
      try {
        const response = await this.connect();
        if (response.status === 204) return;
        for await (const event of this.events(response)) {
          yield event;
          if (this.result !== undefined) return;
        }
      } catch (error) {
        if (error instanceof RetainError) throw error;
        this.signal?.throwIfAborted();
        await this.pause(error);
      }
    }
  }

  private connect(): Promise<Response> {
    if (this.runId !== undefined && this.instanceId !== undefined) {
      return this.connections.follow(this.instanceId, this.runId, this.lastEventId);
    }
    if (this.connections.begin === undefined) throw new TypeError("a stream begins a run or follows one");
    return this.connections.begin(this.lastEventId);
  }

  /** Yield the events of one connection. Throws what reading throws when it breaks. */
  private async *events(response: Response): AsyncGenerator<StreamedEvent, void, undefined> {
    if (!isStream(response) || response.body === null) {
      this.noteBegun(objectOf(await response.text()));
      return;
    }
    let heard = false;
    let brought = false;
    for await (const event of eventsOf(piecesOf(response.body, this.silenceS))) {
      heard = true;
      this.failures = 0;
      if (event === undefined) continue;
      brought = true;
      this.note(event);
      yield event;
    }
    if (!heard) throw new Error("the stream ended without an event");
    // A proxy that only cuts is not asked without a pause.
    if (!brought) await sleep(this.retries.firstPauseS, this.signal);
  }

  private note(event: StreamedEvent): void {
    if (event.id !== undefined) this.lastEventId = event.id;
    if (this.runId === undefined && "run_id" in event.data) this.noteRun(event.data);
    this.result = resultOf(event);
  }

  private noteBegun({ run_id, instance_id }: Record<string, unknown>): void {
    if (this.runId !== undefined) throw notRetains("the events of a run are a stream");
    if (typeof run_id !== "string" || typeof instance_id !== "string") throw notRetains("it is neither a stream nor a run");
    this.noteRun({ run_id, instance_id });
  }

  private noteRun(data: { run_id: string; instance_id: string }): void {
    this.runId = data.run_id;
    this.instanceId = data.instance_id;
  }

  private async pause(error: unknown): Promise<void> {
    this.failures += 1;
    const pause = afterFailure(this.retries, this.failures, true);
    if (pause === undefined) throw noAnswer(error);
    await sleep(pause, this.signal);
  }
}
