import { z } from 'zod';
import { localTime } from '#channel-kit/time-text.ts';
import { type ProcessAddress, readProcessAddresses } from '../processes/process-address.ts';
import { askHttp } from './ask-http.ts';

const downSchema = z.object({
  name: z.string(),
  state: z.string(),
  reason: z.string().max(2_000).default('unknown reason'),
  since: z.string().exactOptional(),
  nextTryAt: z.string().exactOptional(),
});

/** The answer of `/readyz`. */
export const readySchema = z.object({ status: z.string(), components: z.array(downSchema).default([]) });

/** A process of the data folder and how it answers. */
export type ProcessHealth = ProcessAddress & {
  /** `silent`: it is alive but doesn't answer. */
  readonly health: 'ready' | 'not ready' | 'silent';
  readonly down: readonly z.infer<typeof downSchema>[];
};

const patienceMs = 5_000;

/** Returns the health of the processes on this data folder, from their own `/readyz`. Never throws because of it. */
export async function askProcesses(dataDir: string): Promise<readonly ProcessHealth[]> {
  return Promise.all((await readProcessAddresses(dataDir)).map(askOne));
}

async function askOne(address: ProcessAddress): Promise<ProcessHealth> {
  const answer = await askHttp(`${address.url}/readyz`, { signal: AbortSignal.timeout(patienceMs) });
  const told = answer.kind === 'answer' ? readySchema.safeParse(answer.body).data : undefined;
  // It is stopping or stuck, or another program now has its address.
  if (answer.kind !== 'answer' || told === undefined) return { ...address, health: 'silent', down: [] };
  const down = told.components.filter(({ state }) => state === 'down');
  return { ...address, health: answer.httpStatus === 200 ? 'ready' : 'not ready', down };
}

/** Returns `worker 4711 at http://127.0.0.1:40123: not ready`, and a line for each component that is down. */
export function processLines({ role, pid, url, health, down }: ProcessHealth): readonly string[] {
  return [`${role} ${pid} at ${url}: ${health}`, ...down.map((one) => `  ${downText(one)}`)];
}

/** Returns `telegram is down since …, next try …: reason`. */
export function downText({ name, reason, since, nextTryAt }: ProcessHealth['down'][number]): string {
  const from = since === undefined ? '' : ` since ${localTime(Date.parse(since))}`;
  const next = nextTryAt === undefined ? '' : `, next try ${localTime(Date.parse(nextTryAt))}`;
  return `${name} is down${from}${next}: ${reason}`;
}
