import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { parleyCommand, startCommand } from '#channel-kit/own-commands.ts';
import { parseJson } from '#channel-kit/parse-json.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Config } from '../config/config.ts';
import { stripText } from '../logging/redaction.ts';
import { type ProcessAddress, readProcessAddresses } from '../processes/process-address.ts';
import { pageAddress } from '../server/page-address.ts';
import { changeHeader } from '../server/request-guard.ts';
import { readySchema } from './ask-processes.ts';

const statusSchema = z.object({
  version: z.string(),
  startedAt: z.number(),
  model: z.object({ name: z.string(), isDemo: z.boolean() }),
  channels: z.array(
    z.object({
      id: z.string(),
      state: z.string(),
      detail: z.string(),
      since: z.number().exactOptional(),
      nextTryAt: z.number().exactOptional(),
    }),
  ),
  problems: z.array(z.object({ id: z.string(), text: z.string() })).default([]),
});

const noticesSchema = z.object({
  notices: z.array(z.object({ id: z.string(), text: z.string(), since: z.number() }).loose()),
});

const lanesSchema = z.object({
  lanes: z.array(
    z.object({
      key: z.string(),
      title: z.string().exactOptional(),
      state: z.string(),
      run: z
        .object({
          id: z.string(),
          ageMs: z.number(),
          waitsFor: z.string().exactOptional(),
          isStopping: z.boolean(),
        })
        .exactOptional(),
      waitingCount: z.number(),
    }),
  ),
  next: z.string().exactOptional(),
});

/** A lane with a run or waiting messages. */
export type AskedLane = z.infer<typeof lanesSchema>['lanes'][number];

/** Codes with which a gateway rejects a request. */
const refusalCodes = [
  'wrong_token',
  'sign_in_first',
  'too_many_tries',
  'host_not_allowed',
  'origin_not_allowed',
  'store_unavailable',
  'internal',
] as const;
type RefusalCode = (typeof refusalCodes)[number];
const refusalSchema = z.object({ error: z.object({ code: z.enum(refusalCodes) }) });

/** The answer of `/api/status`, with the notices if they could be read. */
export type AskedStatus = z.infer<typeof statusSchema> & Partial<z.infer<typeof noticesSchema>>;

export type GatewayAnswer =
  | { readonly kind: 'running'; readonly url: string; readonly status: AskedStatus }
  /** No gateway serves the folder, though workers may, and nothing listens at the configured address. */
  | { readonly kind: 'away'; readonly hasWorkers: boolean }
  /** The folder's gateway, which rejects a request like this one. */
  | {
      readonly kind: 'refused';
      readonly url: string;
      readonly code: RefusalCode;
      readonly retryAfterS?: number;
    }
  /** The folder's gateway is alive but gives no readable answer. */
  | { readonly kind: 'silent'; readonly url: string; readonly pid: number }
  /**
   * Something listens at the configured address, but nothing in the folder proves that it is the folder's gateway: it
   * may be another program, or a gateway that can't write there. The token wasn't sent to it. `httpStatus` is 0 when it
   * doesn't speak HTTP; `reasons` say why Parley isn't ready.
   */
  | {
      readonly kind: 'unproven';
      readonly url: string;
      readonly httpStatus: number;
      readonly reasons: readonly string[];
    };

/**
 * Asks the gateway on this data folder for its status. Never throws because of what it finds. Another program may hold
 * the port while Parley is down, so the token only goes to the address that a live process has recorded in the folder.
 */
export async function askGateway(config: Config): Promise<GatewayAnswer> {
  const token = await tokenOf(config);
  const processes = await readProcessAddresses(config.dataDir);
  const gateways = processes.filter(({ role }) => role !== 'worker');
  const asked = await Promise.all(gateways.map((one) => askProcess(one, token)));
  const best = (kind: GatewayAnswer['kind']) => asked.find((answer) => answer.kind === kind);
  const found = best('running') ?? best('refused') ?? best('silent') ?? (await askConfigured(config));
  return found ?? { kind: 'away', hasWorkers: processes.length > 0 };
}

async function askProcess({ url, pid }: ProcessAddress, token: string): Promise<GatewayAnswer> {
  const answer = await ask(`${url}/api/status`, token);
  if (answer.kind !== 'answer') return { kind: 'silent', url, pid };
  const refusal = refusalSchema.safeParse(answer.body).data;
  if (refusal !== undefined) {
    const { retryAfterS } = answer;
    return {
      kind: 'refused',
      url,
      code: refusal.error.code,
      ...(retryAfterS !== undefined && { retryAfterS }),
    };
  }
  const status = statusSchema.safeParse(answer.body).data;
  if (status === undefined) return { kind: 'silent', url, pid };
  const notices = await ask(`${url}/api/notices`, token);
  const shown = notices.kind === 'answer' ? noticesSchema.safeParse(notices.body).data : undefined;
  return { kind: 'running', url, status: { ...status, ...shown } };
}

/** Asks for readiness, which is public, so it needs no token. Undefined when nothing listens there. */
async function askConfigured({ host, port }: Config): Promise<GatewayAnswer | undefined> {
  // 0 means any free port, so there is no address to ask.
  if (port === 0) return undefined;
  const url = pageAddress(host, port);
  const answer = await ask(`${url}/readyz`);
  if (answer.kind === 'away') return undefined;
  if (answer.kind === 'foreign') return { kind: 'unproven', url, httpStatus: 0, reasons: [] };
  const { components = [] } = readySchema.safeParse(answer.body).data ?? {};
  const reasons = components.flatMap(({ state, reason }) => (state === 'down' ? [reason] : []));
  return { kind: 'unproven', url, httpStatus: answer.httpStatus, reasons };
}

/** How many pages of 25 lanes are asked for. */
const maxPages = 20;

/** Returns the lanes that are busy, according to a running gateway; undefined if it can't say. */
export async function askBusyLanes(config: Config, url: string): Promise<readonly AskedLane[] | undefined> {
  const token = await tokenOf(config);
  const busy: AskedLane[] = [];
  let after = '';
  for (let page = 0; page < maxPages; page++) {
    const answer = await ask(`${url}/api/lanes${after}`, token);
    const found = answer.kind === 'answer' ? lanesSchema.safeParse(answer.body).data : undefined;
    if (found === undefined) return undefined;
    const { lanes, next } = found;
    busy.push(...lanes.filter(({ run, waitingCount }) => run !== undefined || waitingCount > 0));
    // Idle lanes come last.
    if (!next?.startsWith('busy:')) return busy;
    after = `?after=${encodeURIComponent(next)}`;
  }
  return busy;
}

export type RunningGateway = Extract<GatewayAnswer, { kind: 'running' }>;

/** Throws ParleyError with the next step when the gateway isn't running, or something else is. */
export async function askRunningGateway(config: Config): Promise<RunningGateway> {
  return requireRunning(await askGateway(config), config);
}

/** Does the same as `askRunningGateway` with an answer already received. */
export function requireRunning(answer: GatewayAnswer, config: Config): RunningGateway {
  if (answer.kind === 'running') return answer;
  const isWrong = answer.kind === 'refused' || (answer.kind === 'unproven' && answer.reasons.length === 0);
  throw new ParleyError(isWrong ? 'invalid_input' : 'store_unavailable', wordsWithoutGateway(answer, config));
}

/** Describes the actual cause and one next step. */
export function wordsWithoutGateway(
  answer: Exclude<GatewayAnswer, { kind: 'running' }>,
  config: Pick<Config, 'dataDir' | 'token'>,
): string {
  const { dataDir } = config;
  switch (answer.kind) {
    case 'away':
      return answer.hasWorkers
        ? `Only workers run on ${dataDir}. Run this where the gateway runs, or start one: ${parleyCommand} start --role gateway`
        : `Parley isn't running on ${dataDir}. Start it: ${startCommand}`;
    case 'refused':
      return wordsForRefusal(answer, config);
    case 'silent':
      return `The gateway at ${answer.url} (process ${answer.pid}) doesn't answer. Try again in a moment, and check its log.`;
    case 'unproven':
      return answer.reasons.length > 0
        ? answer.reasons.map((reason) => stripText(reason)).join('\n')
        : `${describeListener(answer)}, but it isn't the gateway of ${dataDir}. Set PARLEY_DATA_DIR to the folder it was started with.`;
    default:
      return answer satisfies never;
  }
}

function describeListener({ url, httpStatus }: Extract<GatewayAnswer, { kind: 'unproven' }>): string {
  return httpStatus === 0 ? `Something listens at ${url}` : `${url} responds (HTTP ${httpStatus})`;
}

const sameToken = 'Set PARLEY_DATA_DIR and PARLEY_TOKEN to the values it was started with.';

function wordsForRefusal(
  { url, code, retryAfterS = 60 }: Extract<GatewayAnswer, { kind: 'refused' }>,
  { dataDir, token }: Pick<Config, 'dataDir' | 'token'>,
): string {
  const used = token === undefined ? `The token in ${join(dataDir, 'token')}` : 'PARLEY_TOKEN';
  switch (code) {
    case 'wrong_token':
      return `${used} isn't the token of the gateway at ${url}. ${sameToken}`;
    case 'sign_in_first':
      return `There is no token in ${dataDir}, and the gateway at ${url} requires one. ${sameToken}`;
    case 'too_many_tries':
      return `${used} isn't the token of the gateway at ${url}, and too many wrong tokens came from this address: try again in ${retryAfterS} s. ${sameToken}`;
    case 'host_not_allowed':
    case 'origin_not_allowed':
      return `The gateway at ${url} doesn't answer to that name. Add it to allowedHosts in its parley.config.json.`;
    case 'store_unavailable':
      return `The gateway at ${url} can't use its database right now. It keeps trying; try again in a moment.`;
    case 'internal':
      return `The gateway at ${url} couldn't answer. Check its log.`;
    default:
      return code satisfies never;
  }
}

/** Posts a change to the running gateway and resolves with its answer. Throws ParleyError if it refuses or fails. */
export async function changeAtGateway(config: Config, url: string): Promise<unknown> {
  const headers = await headersForChange(config);
  try {
    const answer = await fetch(url, { method: 'POST', headers, body: '{}', redirect: 'manual' });
    if (answer.ok) return await readJson(answer);
    throw new ParleyError('invalid_input', `${url} answered HTTP ${answer.status}. Check the gateway's log.`);
  } catch (error) {
    if (error instanceof ParleyError) throw error;
    throw new ParleyError('store_unavailable', `The gateway at ${url} didn't answer. Try again.`, {
      cause: error,
    });
  }
}

/** Returns the headers of a request that changes something: the token, and one that no cross-origin page can send. */
export async function headersForChange(config: Config): Promise<Readonly<Record<string, string>>> {
  const authorization = `Bearer ${await tokenOf(config)}`;
  return { authorization, 'content-type': 'application/json', [changeHeader]: '1' };
}

/** Returns the token of a gateway with this configuration; empty before its first start. */
export async function tokenOf(config: Pick<Config, 'token' | 'dataDir'>): Promise<string> {
  if (config.token !== undefined) return config.token.reveal();
  return (await readFile(join(config.dataDir, 'token'), 'utf8').catch(() => '')).trim();
}

type Answer =
  | {
      readonly kind: 'answer';
      readonly httpStatus: number;
      readonly body: unknown;
      readonly retryAfterS: number | undefined;
    }
  | { readonly kind: 'away' }
  | { readonly kind: 'foreign' };

/** Returns undefined for anything that isn't JSON: another program may be listening there. */
async function readJson(answer: Response): Promise<unknown> {
  try {
    return parseJson(await answer.text());
  } catch {
    return undefined;
  }
}

async function ask(url: string, token = ''): Promise<Answer> {
  try {
    const headers = token === '' ? {} : { authorization: `Bearer ${token}` };
    const answer = await fetch(url, { headers, redirect: 'manual', signal: AbortSignal.timeout(5_000) });
    const body: unknown = await readJson(answer);
    const waitS = Number.parseInt(answer.headers.get('retry-after') ?? '', 10);
    const retryAfterS = waitS > 0 && waitS <= 86_400 ? waitS : undefined;
    return { kind: 'answer', httpStatus: answer.status, body, retryAfterS };
  } catch (error) {
    return { kind: isRefused(error) ? 'away' : 'foreign' };
  }
}

/** Says whether nothing listens. A listener that speaks another protocol isn't Parley, but it does occupy the port. */
function isRefused(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  const codes = cause instanceof AggregateError ? cause.errors : [cause];
  return codes.some((one) => one instanceof Error && 'code' in one && one.code === 'ECONNREFUSED');
}
