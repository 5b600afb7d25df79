import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { startCommand } from '#channel-kit/own-commands.ts';
import { parseJson } from '#channel-kit/parse-json.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Config } from '../config/config.ts';
import { readAddress } from '../server/address-file.ts';
import { pageAddress } from '../server/page-address.ts';

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

/** Why a gateway turns a request away, as it says it. */
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

export type AskedStatus = z.infer<typeof statusSchema> & Partial<z.infer<typeof noticesSchema>>;

export type GatewayAnswer =
  | { readonly kind: 'running'; readonly url: string; readonly status: AskedStatus }
  /** Nobody listens there. */
  | { readonly kind: 'away'; readonly url: string }
  /** A Parley that lets nobody in who asks like this. */
  | {
      readonly kind: 'refused';
      readonly url: string;
      readonly code: RefusalCode;
      readonly retryAfterS?: number;
    }
  /** Another program, or the gateway of another data folder. `httpStatus` is 0 when it speaks no HTTP. */
  | { readonly kind: 'foreign'; readonly url: string; readonly httpStatus: number };

/**
 * Asks the gateway that runs on this data folder how it is: where the configuration says, then where the
 * folder says that it was served last. Never throws for what it finds.
 */
export async function askGateway(config: Config): Promise<GatewayAnswer> {
  const token = await tokenOf(config);
  const served = await readAddress(config.dataDir);
  const configured = pageAddress(config.host, config.port);
  // Port 0 is any free one: it names no place to ask.
  const answer: GatewayAnswer =
    config.port === 0 ? { kind: 'away', url: configured } : await askAt(configured, token);
  if (answer.kind === 'running' || served === undefined || served === configured) return answer;
  const other = await askAt(served, token);
  // A refusal with a reason says more than an address where nothing listens.
  return other.kind === 'running' || answer.kind === 'away' ? other : answer;
}

async function askAt(url: string, token: string): Promise<GatewayAnswer> {
  const status = await ask(`${url}/api/status`, token);
  if (status.kind !== 'answer') return { kind: status.kind, url, httpStatus: 0 };
  const refusal = refusalSchema.safeParse(status.body).data;
  if (refusal !== undefined) {
    const { retryAfterS } = status;
    return {
      kind: 'refused',
      url,
      code: refusal.error.code,
      ...(retryAfterS !== undefined && { retryAfterS }),
    };
  }
  const parsed = statusSchema.safeParse(status.body).data;
  if (parsed === undefined) return { kind: 'foreign', url, httpStatus: status.httpStatus };
  const notices = await ask(`${url}/api/notices`, token);
  const shown = notices.kind === 'answer' ? noticesSchema.safeParse(notices.body).data : undefined;
  return { kind: 'running', url, status: { ...parsed, ...shown } };
}

/** Throws ParleyError with what to do when it does not run, or another does. */
export async function askRunningGateway(
  config: Config,
): Promise<Extract<GatewayAnswer, { kind: 'running' }>> {
  const answer = await askGateway(config);
  switch (answer.kind) {
    case 'running':
      return answer;
    case 'away':
      throw new ParleyError(
        'store_unavailable',
        `Parley isn't running at ${answer.url}. Start it: ${startCommand}`,
      );
    case 'refused':
      throw new ParleyError('invalid_input', wordsForRefusal(answer, config));
    case 'foreign':
      throw new ParleyError(
        'invalid_input',
        `${answer.url} responds (HTTP ${answer.httpStatus}), but it isn't the gateway of ${config.dataDir}. Set PARLEY_DATA_DIR and PARLEY_PORT to the values it was started with.`,
      );
    default:
      return answer satisfies never;
  }
}

const sameFolder = 'Set PARLEY_DATA_DIR, PARLEY_PORT and PARLEY_TOKEN to the values it was started with.';

/** The real cause and one next step. */
export function wordsForRefusal(
  { url, code, retryAfterS = 60 }: Extract<GatewayAnswer, { kind: 'refused' }>,
  { dataDir, token }: Pick<Config, 'dataDir' | 'token'>,
): string {
  const used = token === undefined ? `The token in ${join(dataDir, 'token')}` : 'PARLEY_TOKEN';
  switch (code) {
    case 'wrong_token':
      return `${used} isn't the token of the gateway at ${url}. ${sameFolder}`;
    case 'sign_in_first':
      return `There is no token in ${dataDir}, and the gateway at ${url} requires one. ${sameFolder}`;
    case 'too_many_tries':
      return `${used} isn't the token of the gateway at ${url}, and too many wrong tokens came from this address: try again in ${retryAfterS} s. ${sameFolder}`;
    case 'host_not_allowed':
    case 'origin_not_allowed':
      return `The gateway at ${url} doesn't answer to that name. Add it to allowedHosts in its parley.config.json.`;
    case 'store_unavailable':
      return `The gateway at ${url} can't use its database right now. It keeps trying; ask again in a moment.`;
    case 'internal':
      return `The gateway at ${url} couldn't answer. Check its log.`;
    default:
      return code satisfies never;
  }
}

/** Has the running gateway do something; resolves with its answer. Throws ParleyError when it refuses or goes away. */
export async function changeAtGateway(config: Config, url: string, body: object = {}): Promise<unknown> {
  const headers = {
    authorization: `Bearer ${await tokenOf(config)}`,
    'content-type': 'application/json',
    'x-parley': 'cli',
  };
  try {
    const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
    if (answer.ok) return await readJson(answer);
    throw new ParleyError('invalid_input', `${url} answered HTTP ${answer.status}. Check the gateway's log.`);
  } catch (error) {
    if (error instanceof ParleyError) throw error;
    throw new ParleyError('store_unavailable', `The gateway at ${url} didn't answer. Ask it again.`, {
      cause: error,
    });
  }
}

/** The token that a gateway with this configuration has; empty before its first start. */
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

/** Undefined for what is no JSON: something else may listen there. */
async function readJson(answer: Response): Promise<unknown> {
  try {
    return parseJson(await answer.text());
  } catch {
    return undefined;
  }
}

async function ask(url: string, token: string): Promise<Answer> {
  try {
    const headers = token === '' ? {} : { authorization: `Bearer ${token}` };
    const answer = await fetch(url, { headers, signal: AbortSignal.timeout(5_000) });
    const body: unknown = await readJson(answer);
    const waitS = Number.parseInt(answer.headers.get('retry-after') ?? '', 10);
    const retryAfterS = waitS > 0 && waitS <= 86_400 ? waitS : undefined;
    return { kind: 'answer', httpStatus: answer.status, body, retryAfterS };
  } catch (error) {
    return { kind: isRefused(error) ? 'away' : 'foreign' };
  }
}

/** A program that listens and speaks another protocol isn't Parley, but it is there. */
function isRefused(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  const codes = cause instanceof AggregateError ? cause.errors : [cause];
  return codes.some((one) => one instanceof Error && 'code' in one && one.code === 'ECONNREFUSED');
}
