import { RetainError } from "./errors.js";
import { Pages } from "./pages.js";
import { type Retries, sleep } from "./retries.js";
import { RunStream } from "./run-stream.js";
import { answered, type Api, hasEnded, type Query, type Run, type Schemas } from "./schemas.js";
import { keyed } from "./transport.js";

/** signal: ends the call. idempotencyKey: with the same one the same run is returned; a new one if absent. */
export interface StartOptions {
  idempotencyKey?: string;
  signal?: AbortSignal;
}
type Begun = Omit<Schemas["RunBody"], "stream">;

/** The runs of a tenant's agents. */
export class Runs {
  constructor(
    private readonly api: Api,
    private readonly tenant: string,
    private readonly retries: Retries,
    private readonly timeoutS: number,
  ) {}

  /** Run an agent; return the result, or the open run when it waits, is queued or is in the background. */
  async start(agentType: string, run: Begun, options: StartOptions = {}): Promise<Run> {
    return answered(
      await this.api.POST("/v1/agents/{tenant}/{agent_type}/run", {
        params: {
          path: { tenant: this.tenant, agent_type: agentType },
          header: keyed(options.idempotencyKey),
        },
        body: run,
        ...signalled(options.signal),
      }),
    );
  }

  /** Return the events of a run that begins when they are iterated. */
  stream(agentType: string, run: Omit<Begun, "background">, options: StartOptions = {}): RunStream {
    const key = keyed(options.idempotencyKey);
    const begin = async (lastEventId: string | undefined): Promise<Response> => {
      const { response } = await this.api.POST("/v1/agents/{tenant}/{agent_type}/run", {
        params: {
          path: { tenant: this.tenant, agent_type: agentType },
          header: { ...key, ...after(lastEventId) },
        },
        body: { ...run, stream: true },
        parseAs: "stream",
        ...signalled(options.signal),
      });
      return response;
    };
    return this.streamOf(agentType, options.signal, begin);
  }

  /** Return the events of a run that exists, from its beginning or after an event. */
  follow(
    agentType: string,
    instanceId: string,
    runId: string,
    options: { lastEventId?: string; signal?: AbortSignal } = {},
  ): RunStream {
    const stream = this.streamOf(agentType, options.signal);
    stream.instanceId = instanceId;
    stream.runId = runId;
    stream.lastEventId = options.lastEventId;
    return stream;
  }

  /** Return a run. */
  async get(
    agentType: string,
    instanceId: string,
    runId: string,
    options: { signal?: AbortSignal } = {},
  ): Promise<Run> {
    return answered(
      await this.api.GET("/v1/agents/{tenant}/{agent_type}/instances/{instance_id}/runs/{run_id}", {
        params: { path: this.path(agentType, instanceId, runId) },
        ...signalled(options.signal),
      }),
    );
  }

  /**
   * Return a run once it has ended or waits for an approval, or as it is when the time is up.
   *
   * A run whose delegate waits for an approval, or a delegate of that one, waits for it too: its `waiting_for` names the
   * delegate's run. It is asked for every `pollS` seconds; a stream reports it sooner.
   */
  async wait(
    agentType: string,
    instanceId: string,
    runId: string,
    options: { timeoutS?: number; pollS?: number; signal?: AbortSignal } = {},
  ): Promise<Run> {
    const pollS = options.pollS ?? 1;
    const until = Date.now() + ((options.timeoutS ?? 600) - pollS) * 1000;
    for (;;) {
      const run = await this.get(agentType, instanceId, runId, options);
      if (hasEnded(run) || (await this.waitsForAPerson(run, options)) || Date.now() > until) return run;
      await sleep(pollS, options.signal);
    }
  }

  private async waitsForAPerson(run: Run, options: { signal?: AbortSignal }): Promise<boolean> {
    while (!hasEnded(run)) {
      const awaited = run.waiting_for;
      if (awaited?.kind !== "delegate") return awaited?.kind === "approval";
      try {
        run = await this.get(awaited.agent_type, awaited.instance_id, awaited.run_id, options);
      } catch (error) {
        // It is gone, or the token of a user does not reach it.
        if (error instanceof RetainError && (error.status === 403 || error.status === 404)) return false;
        throw error;
      }
    }
    return false;
  }

  /** Return the tenant's runs, newest first. */
  list(query: Query<"list_runs"> = {}): Pages<Schemas["ListedRun"]> {
    return new Pages(async (cursor) => {
      const params = { path: { tenant: this.tenant }, query: { ...query, ...cursor } };
      const page = answered(await this.api.GET("/v1/agents/{tenant}/runs", { params }));
      return [page.runs, page.cursor];
    });
  }

  /** Return what was spent by day, agent, purpose and model, the last day first. */
  costs(query: Query<"list_costs"> = {}): Pages<Schemas["DayCost"]> {
    return new Pages(async (cursor) => {
      const params = { path: { tenant: this.tenant }, query: { ...query, ...cursor } };
      const page = answered(await this.api.GET("/v1/tenants/{tenant}/costs", { params }));
      return [page.costs, page.cursor];
    });
  }

  /** Stop a run before its next side effect. */
  async cancel(agentType: string, instanceId: string, runId: string, body: Schemas["CancelBody"] = {}): Promise<Run> {
    const params = { path: this.path(agentType, instanceId, runId) };
    return answered(
      await this.api.POST("/v1/agents/{tenant}/{agent_type}/instances/{instance_id}/runs/{run_id}/cancel", {
        params,
        body,
      }),
    );
  }

  /** Cancel the open runs that meet every condition, of which one is needed; return them, each with what prevented it. */
  async cancelAll(conditions: Omit<Schemas["CancelRunsBody"], "limit" | "cursor">): Promise<Schemas["CancelledRun"][]> {
    const params = { path: { tenant: this.tenant } };
    const cancelled: Schemas["CancelledRun"][] = [];
    for (let cursor: string | null = null; ; ) {
      const body: Schemas["CancelRunsBody"] = { ...conditions, cursor };
      const page = answered(await this.api.POST("/v1/agents/{tenant}/runs/cancel", { params, body }));
      cancelled.push(...page.runs);
      if (page.cursor === null) return cancelled;
      cursor = page.cursor;
    }
  }

  /** Begin a run that continues a failed or cancelled one from the step that failed, and return it. */
  async retry(agentType: string, instanceId: string, runId: string, options: StartOptions = {}): Promise<Run> {
    return answered(
      await this.api.POST("/v1/agents/{tenant}/{agent_type}/instances/{instance_id}/runs/{run_id}/retry", {
        params: { path: this.path(agentType, instanceId, runId), header: keyed(options.idempotencyKey) },
        ...signalled(options.signal),
      }),
    );
  }

  /** Begin a run that keeps the first turns of one that has ended, and return it. */
  async fork(
    agentType: string,
    instanceId: string,
    runId: string,
    turns: number,
    options: StartOptions = {},
  ): Promise<Run> {
    return answered(
      await this.api.POST("/v1/agents/{tenant}/{agent_type}/instances/{instance_id}/runs/{run_id}/fork", {
        params: { path: this.path(agentType, instanceId, runId), header: keyed(options.idempotencyKey) },
        body: { turns },
        ...signalled(options.signal),
      }),
    );
  }

  /** Allow the call that a run asks about; `call` is its name in the question. */
  approve(agentType: string, instanceId: string, runId: string, call: string, reason?: string): Promise<Run> {
    return this.answer(agentType, instanceId, runId, { call, decision: "approve", reason: reason ?? null });
  }

  /** Refuse the call that a run asks about. */
  reject(agentType: string, instanceId: string, runId: string, call: string, reason?: string): Promise<Run> {
    return this.answer(agentType, instanceId, runId, { call, decision: "reject", reason: reason ?? null });
  }

  private async answer(
    agentType: string,
    instanceId: string,
    runId: string,
    body: Schemas["ResumeBody"],
  ): Promise<Run> {
    const params = { path: this.path(agentType, instanceId, runId) };
    return answered(
      await this.api.POST("/v1/agents/{tenant}/{agent_type}/instances/{instance_id}/runs/{run_id}/resume", {
        params,
        body,
      }),
    );
  }

  private path(agentType: string, instanceId: string, runId: string) {
    return { tenant: this.tenant, agent_type: agentType, instance_id: instanceId, run_id: runId };
  }

  private streamOf(
    agentType: string,
    signal: AbortSignal | undefined,
    begin?: (lastEventId: string | undefined) => Promise<Response>,
  ): RunStream {
    const follow = async (instanceId: string, runId: string, lastEventId: string | undefined): Promise<Response> => {
      const { response } = await this.api.GET(
        "/v1/agents/{tenant}/{agent_type}/instances/{instance_id}/runs/{run_id}/events",
        {
          params: { path: this.path(agentType, instanceId, runId), header: after(lastEventId) },
          parseAs: "stream",
          ...signalled(signal),
        },
      );
      return response;
    };
    return new RunStream(begin === undefined ? { follow } : { begin, follow }, this.retries, this.timeoutS, signal);
  }
}

function after(lastEventId: string | undefined): { "last-event-id"?: string } {
  return lastEventId === undefined ? {} : { "last-event-id": lastEventId };
}

function signalled(signal: AbortSignal | undefined): { signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}
