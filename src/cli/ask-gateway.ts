import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { parleyCommand, startCommand } from '#channel-kit/own-commands.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Config } from '../config/config.ts';
import { stripText } from '../logging/redaction.ts';
import { listNotices } from '../operations/notices.ts';
import type { Operation } from '../operations/operation.ts';
import { showStatus } from '../operations/status.ts';
import { type ProcessAddress, readProcessAddresses } from '../processes/process-address.ts';
import { pageAddress } from '../server/allowed-origins.ts';
import { changeHeader } from '../server/request-guard.ts';
import { askHttp } from './ask-http.ts';
import { readySchema } from './ask-processes.ts';

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
const refusalSchema = z.object({ error: z.object({ code: z.string(), text: z.string().exactOptional() }) });

/** The gateway's status, with the notices if they could be read. */
export type AskedStatus = Answer<typeof showStatus> & Partial<Pick<Answer<typeof listNotices>, 'notices'>>;

type Answer<Asked> = Asked extends Operation<never, z.ZodType, infer Schema> ? z.output<Schema> : never;

export type GatewayAnswer =
  | { readonly kind: 'running'; readonly url: string; readonly pid: number; readonly status: AskedStatus }
  /** No gateway serves the folder, though workers may, and nothing listens at the configured address. */
  | { readonly kind: 'away'; readonly hasWorkers: boolean }
  /** The folder's gateway, which rejects a request like this one. */
  | {
      readonly kind: 'refused';
      readonly url: string;
      readonly code: RefusalCode;
      readonly text?: string;
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
  const asked = await Promise.all(gateways.map((one) => askStatus(one, token)));
  const best = (kind: GatewayAnswer['kind']) => asked.find((answer) => answer.kind === kind);
  const found = best('running') ?? best('refused') ?? best('silent') ?? (await askConfigured(config));
  return found ?? { kind: 'away', hasWorkers: processes.length > 0 };
}

async function askStatus(gateway: ProcessAddress, token: string): Promise<GatewayAnswer> {
  const { url, pid } = gateway;
  const status = await askOne(gateway, { token }, showStatus, {});
  if (status.kind === 'unserved' || status.kind === 'refusal') return { kind: 'silent', url, pid };
  if (status.kind !== 'answer') return status;
  const asked = await askOne(gateway, { token }, listNotices, {});
  const notices = asked.kind === 'answer' ? { notices: asked.answer.notices } : {};
  return { kind: 'running', url, pid, status: { ...status.answer, ...notices } };
}

/** Asks for readiness, which is public, so it needs no token. Undefined when nothing listens there. */
async function askConfigured({ host, port }: Config): Promise<GatewayAnswer | undefined> {
  // 0 means any free port, so there is no address to ask.
  if (port === 0) return undefined;
  const url = pageAddress(host, port);
  const answer = await askHttp(`${url}/readyz`, { signal: AbortSignal.timeout(patienceMs.GET) });
  if (answer.kind === 'away') return undefined;
  if (answer.kind === 'foreign') return { kind: 'unproven', url, httpStatus: 0, reasons: [] };
  const { components = [] } = readySchema.safeParse(answer.body).data ?? {};
  const reasons = components.flatMap(({ state, reason }) => (state === 'down' ? [reason] : []));
  return { kind: 'unproven', url, httpStatus: answer.httpStatus, reasons };
}

export type RunningGateway = Extract<GatewayAnswer, { kind: 'running' }>;

/** Throws ParleyError with the next step when the gateway isn't running, or something else is. */
export async function askRunningGateway(config: Config): Promise<RunningGateway> {
  return requireRunning(await askGateway(config), config);
}

/** Does the same as `askRunningGateway` with an answer already received. */
export function requireRunning(answer: GatewayAnswer, config: Config): RunningGateway {
  return answer.kind === 'running' ? answer : fail(answer, config);
}

/** Throws ParleyError for what a gateway hasn't done, with the cause and one next step. */
export function fail(answer: NoAnswer, config: Config): never {
  const isWrong =
    answer.kind === 'refusal' ||
    answer.kind === 'refused' ||
    (answer.kind === 'unproven' && answer.reasons.length === 0);
  throw new ParleyError(isWrong ? 'invalid_input' : 'store_unavailable', wordsWithoutGateway(answer, config));
}

/** Any outcome that isn't an answer. */
export type NoAnswer =
  | Exclude<GatewayAnswer, { kind: 'running' }>
  | Exclude<OperationAnswer<unknown>, { kind: 'answer' }>;

/** Describes the actual cause and one next step. */
export function wordsWithoutGateway(answer: NoAnswer, config: Pick<Config, 'dataDir' | 'token'>): string {
  const { dataDir } = config;
  switch (answer.kind) {
    case 'away':
      return answer.hasWorkers
        ? `Only workers run on ${dataDir}. Run this where the gateway runs, or start one: ${parleyCommand} start --role gateway`
        : `Parley isn't running on ${dataDir}. Start it: ${startCommand}`;
    case 'refusal':
      return stripText(answer.text ?? answer.code);
    case 'unserved':
      return `The gateway at ${answer.url} is of an earlier version. Restart it.`;
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

/** How a gateway answers an operation. */
export type OperationAnswer<Answer> =
  | { readonly kind: 'answer'; readonly answer: Answer }
  /** The operation refuses. */
  | { readonly kind: 'refusal'; readonly code: string; readonly text?: string | undefined }
  /** It doesn't know the operation: its version is an earlier one. */
  | { readonly kind: 'unserved'; readonly url: string }
  | Extract<GatewayAnswer, { kind: 'refused' | 'silent' }>;

/** Asks the folder's gateways for the operation, until one of them answers. */
export async function askOperation<Input extends z.ZodType, Answered extends z.ZodType>(
  config: Config,
  operation: Operation<never, Input, Answered>,
  input: z.input<Input>,
): Promise<OperationAnswer<z.output<Answered>> | Extract<GatewayAnswer, { kind: 'away' }>> {
  const token = await tokenOf(config);
  const processes = await readProcessAddresses(config.dataDir);
  let last: OperationAnswer<z.output<Answered>> | undefined;
  for (const gateway of processes.filter(({ role }) => role !== 'worker')) {
    last = await askOne(gateway, { token }, operation, input);
    if (last.kind === 'answer' || last.kind === 'refusal') return last;
  }
  return last ?? { kind: 'away', hasWorkers: processes.length > 0 };
}

/** Asks a running gateway for an operation. Throws ParleyError if it refuses or doesn't answer. */
export async function askRunning<Input extends z.ZodType, Answered extends z.ZodType>(
  gateway: Pick<RunningGateway, 'url' | 'pid'>,
  config: Config,
  operation: Operation<never, Input, Answered>,
  input: z.input<Input>,
): Promise<z.output<Answered>> {
  const asked = await askOne(gateway, { token: await tokenOf(config) }, operation, input);
  return asked.kind === 'answer' ? asked.answer : fail(asked, config);
}

/** How long a read and a change may take, ms. A change that takes longer may still happen, and is safe to repeat. */
const patienceMs = { GET: 5_000, POST: 30_000 } as const;

/** `waitMs`: how long the operation itself may wait. */
type Manner = { readonly token: string; readonly waitMs?: number };

/** Asks one gateway. Never throws because of what it answers. */
async function askOne<Input extends z.ZodType, Answered extends z.ZodType>(
  { url, pid }: Pick<ProcessAddress, 'url' | 'pid'>,
  { token, waitMs = 0 }: Manner,
  { name, method, answer: schema, refusals = [] }: Operation<never, Input, Answered>,
  input: z.input<Input>,
): Promise<OperationAnswer<z.output<Answered>>> {
  const isChange = method === 'POST';
  const query = isChange ? '' : `?${new URLSearchParams(input as Record<string, string>)}`;
  const answer = await askHttp(`${url}/api/${name}${query}`, {
    method,
    // A page of another origin can't send the header that changes require.
    headers: {
      ...(token !== '' && { authorization: `Bearer ${token}` }),
      ...(isChange && { 'content-type': 'application/json', [changeHeader]: '1' }),
    },
    ...(isChange && { body: JSON.stringify(input) }),
    signal: AbortSignal.timeout(waitMs + patienceMs[method]),
  });
  const silent = { kind: 'silent', url, pid } as const;
  if (answer.kind !== 'answer') return silent;
  const refused = refusalSchema.safeParse(answer.body).data?.error;
  if (refused === undefined) {
    const parsed = schema.safeParse(answer.body);
    return parsed.success ? { kind: 'answer', answer: parsed.data } : silent;
  }
  const { code, text } = refused;
  // A limit on codes is the operation's own; one on tokens comes without a text.
  const isOwn = text !== undefined && refusals.some((one) => one === code);
  const known = isOwn ? undefined : refusalCodes.find((one) => one === code);
  const { retryAfterS } = answer;
  if (known !== undefined)
    return {
      ...{ kind: 'refused', url, code: known },
      ...(text !== undefined && { text }),
      ...(retryAfterS !== undefined && { retryAfterS }),
    };
  const isUnserved = answer.httpStatus === 404 && text === undefined;
  return isUnserved ? { kind: 'unserved', url } : { kind: 'refusal', code, text };
}

/** Returns the token of a gateway with this configuration; empty before its first start. */
export async function tokenOf(config: Pick<Config, 'token' | 'dataDir'>): Promise<string> {
  if (config.token !== undefined) return config.token.reveal();
  return (await readFile(join(config.dataDir, 'token'), 'utf8').catch(() => '')).trim();
}

/** Asks the gateway. A message may be stored even if no answer came, so the error says how to continue: `again`. */
export function createAsk(
  gateway: RunningGateway,
  { again, config, token }: { readonly again: string; readonly config: Config; readonly token: string },
) {
  return async <Input extends z.ZodType, Answer extends z.ZodType>(
    operation: Operation<never, Input, Answer>,
    input: z.input<Input>,
    waitMs = 0,
  ): Promise<z.output<Answer>> => {
    const asked = await askOne(gateway, { token, waitMs }, operation, input);
    switch (asked.kind) {
      case 'answer':
        return asked.answer;
      case 'silent':
        throw new ParleyError(
          'store_unavailable',
          `The gateway at ${gateway.url} stopped responding. ${again}`,
        );
      case 'refused':
        throw new ParleyError('invalid_input', `${asked.text ?? asked.code} ${again}`);
      default:
        return fail(asked, config);
    }
  };
}
