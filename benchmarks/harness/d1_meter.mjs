// Is between a Worker and D1, and counts its calls and the rows that D1 bills. GET /counts answers the sums.
import { WorkerEntrypoint } from "cloudflare:workers";

const counts = { trips: 0, rows_read: 0, rows_written: 0 };

function note(results) {
  counts.trips += 1;
  for (const { meta } of Array.isArray(results) ? results : [results]) {
    counts.rows_read += meta?.rows_read ?? 0;
    counts.rows_written += meta?.rows_written ?? 0;
  }
}

export default class Meter extends WorkerEntrypoint {
  async fetch(request) {
    if (new URL(request.url).pathname === "/counts") return Response.json(counts);
    const answer = await this.env.D1.fetch(request);
    note(await answer.clone().json());
    return answer;
  }

  async query(...given) {
    const answer = await this.env.D1.query(...given);
    note(answer.results ?? answer);
    return answer;
  }
}
