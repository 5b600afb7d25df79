import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { ParleyError } from '#contracts/errors.ts';
import { parseJson } from '#contracts/parse-json.ts';
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

export type AskedStatus = z.infer<typeof statusSchema> & Partial<z.infer<typeof noticesSchema>>;

export type GatewayAnswer =
  | { readonly kind: 'running'; readonly url: string; readonly status: AskedStatus }
  /** Nobody listens there. */
  | { readonly kind: 'away'; readonly url: string }
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
  return other.kind === 'running' ? other : answer;
}

async function askAt(url: string, token: string): Promise<GatewayAnswer> {
  const status = await ask(`${url}/api/status`, token);
  if (status.kind !== 'answer') return { kind: status.kind, url, httpStatus: 0 };
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
        `Parley does not answer at ${answer.url}. Start it with: npm start`,
      );
    case 'foreign':
      throw new ParleyError(
        'invalid_input',
        `${answer.url} answers, but it is not the gateway of ${config.dataDir} (HTTP ${answer.httpStatus}). Set PARLEY_DATA_DIR and PARLEY_PORT as it was started with.`,
      );
    default:
      return answer satisfies never;
  }
}

async function tokenOf(config: Config): Promise<string> {
  if (config.token !== undefined) return config.token.reveal();
  return (await readFile(join(config.dataDir, 'token'), 'utf8').catch(() => '')).trim();
}

type Answer =
  | { readonly kind: 'answer'; readonly httpStatus: number; readonly body: unknown }
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
    const body: unknown = answer.ok ? await readJson(answer) : undefined;
    return { kind: 'answer', httpStatus: answer.status, body };
  } catch (error) {
    return { kind: isRefused(error) ? 'away' : 'foreign' };
  }
}

/** A program that listens and speaks something else is none of ours, but it is there. */
function isRefused(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  const codes = cause instanceof AggregateError ? cause.errors : [cause];
  return codes.some((one) => one instanceof Error && 'code' in one && one.code === 'ECONNREFUSED');
}
