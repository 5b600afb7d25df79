import { Readable } from 'node:stream';
import { Agent, type Dispatcher, request } from 'undici';
import { z } from 'zod';
import { channelUnavailable } from '#channel-kit/network-fault.ts';
import { longestText, readText } from '#channel-kit/read-json.ts';
import { isRedirect, refuseRedirect } from '#channel-kit/redirects.ts';
import { createYielder } from '#channel-kit/take-turns.ts';
import { withLimit } from '#channel-kit/with-limit.ts';
import { ParleyError } from '#contracts/errors.ts';
import type {
  ReactionRequest,
  ReceiptRequest,
  RemoteDeleteRequest,
  RemoveReactionRequest,
  SendRequest,
  TypingRequest,
} from './api.generated.ts';
import type { SignalConfig } from './config.ts';
import { type Answer, noServerReason, refusalReason } from './failures.ts';

type Requests = {
  readonly 'POST /v2/send': SendRequest;
  readonly 'DELETE /v1/remote-delete/{number}': RemoteDeleteRequest;
  readonly 'POST /v1/reactions/{number}': ReactionRequest;
  readonly 'DELETE /v1/reactions/{number}': RemoveReactionRequest;
  readonly 'PUT /v1/typing-indicator/{number}': TypingRequest;
  readonly 'POST /v1/receipts/{number}': ReceiptRequest;
};

export type CallName = keyof Requests;

/** A body; one that isn't text is produced while it is sent. */
type Body = string | AsyncIterable<Uint8Array>;

const aboutSchema = z.object({ mode: z.string(), version: z.string().nullish() });
const identitySchema = z.array(z.object({ number: z.string().nullish(), uuid: z.string().nullish() }));
const personSchema = z.union([
  z.string(),
  z.object({ number: z.string().nullish(), uuid: z.string().nullish() }),
]);
const groupSchema = z.object({
  internal_id: z.string(),
  name: z.string().nullish(),
  members: z.array(personSchema).nullish(),
  admins: z.array(personSchema).nullish(),
  member: z.boolean().nullish(),
});
const contactSchema = z.object({
  number: z.string().nullish(),
  uuid: z.string().nullish(),
  profile_name: z.string().nullish(),
  profile: z.object({ given_name: z.string().nullish() }).nullish(),
});
const linkSchema = z.object({ device_link_uri: z.string() });

export type Mode = 'json-rpc' | 'polling';
export type ListedGroup = z.output<typeof groupSchema>;
export type ListedPerson = z.output<typeof personSchema>;
export type ListedContact = z.output<typeof contactSchema>;

/** How often a read-only call is tried: the server drops a signal-cli response that comes too fast. */
const maxAttempts = 3;
/** Long enough for signal-cli to start, in modes where each call starts one, ms. */
const askTimeoutMs = 15_000;
const connectTimeoutMs = 10_000;

/**
 * The calls of signal-cli-rest-api that this channel makes. Each has its own connection: a kept one that is closed just
 * then would leave it unknown whether a message was sent. Only Parley's own timeouts apply.
 */
export class SignalApi {
  readonly #url: string;
  readonly #callTimeoutMs: number;
  readonly #agent = new Agent({
    pipelining: 0,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: connectTimeoutMs },
  });

  constructor({ apiUrl, callTimeoutMs }: Pick<SignalConfig, 'apiUrl' | 'callTimeoutMs'>) {
    this.#url = apiUrl;
    this.#callTimeoutMs = callTimeoutMs;
  }

  /** Makes one call. Rejects only if there was no answer. */
  call<Name extends CallName>(
    name: Name,
    number: string,
    { request: body, signal }: { readonly request: Requests[Name]; readonly signal: AbortSignal },
  ): Promise<Answer> {
    const [method = '', path = ''] = name.split(' ');
    return this.send(method, path.replace('{number}', encodeURIComponent(number)), {
      body: JSON.stringify(body),
      signal,
    });
  }

  /** `POST /v2/send` with a body of any size. */
  sendStream(body: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<Answer> {
    return this.send('POST', '/v2/send', { body, signal });
  }

  async send(
    method: string,
    path: string,
    options: { readonly body?: Body; readonly signal: AbortSignal; readonly timeoutMs?: number },
  ): Promise<Answer> {
    const { body, signal, timeoutMs = this.#callTimeoutMs } = options;
    return withLimit(timeoutMs, signal, async (limited) => {
      const url = `${this.#url}${path}`;
      const answer = await request(url, {
        // The methods come from the names above.
        method: method as Dispatcher.HttpMethod,
        dispatcher: this.#agent,
        signal: limited,
        headers: body === undefined ? {} : { 'content-type': 'application/json' },
        body: body === undefined || typeof body === 'string' ? (body ?? null) : Readable.from(body),
      });
      await refuseRedirected(url, answer);
      return { status: answer.statusCode, body: await bodyOf(answer.body) };
    });
  }

  /** The bytes of an attachment, as they come. */
  async open(path: string, signal: AbortSignal) {
    const url = `${this.#url}${path}`;
    const answer = await request(url, { dispatcher: this.#agent, signal });
    await refuseRedirected(url, answer);
    return answer;
  }

  async about(signal: AbortSignal): Promise<{ readonly mode: Mode; readonly version: string }> {
    const { mode, version } = await this.#ask('/v1/about', aboutSchema, signal);
    return { mode: mode.startsWith('json-rpc') ? 'json-rpc' : 'polling', version: version ?? 'unknown' };
  }

  accounts(signal: AbortSignal): Promise<readonly string[]> {
    return this.#ask('/v1/accounts', z.array(z.string()), signal);
  }

  /** Returns the accounts whose keys signal-cli knows, including its own. */
  identities(number: string, signal: AbortSignal) {
    return this.#ask(`/v1/identities/${encodeURIComponent(number)}`, identitySchema, signal);
  }

  /** Reads a large list in turn with other work, and leaves out any group that can't be read. */
  async groups(number: string, signal: AbortSignal): Promise<readonly ListedGroup[]> {
    const path = `/v1/groups/${encodeURIComponent(number)}?expand=true`;
    const turn = createYielder();
    const groups: ListedGroup[] = [];
    for (const one of await this.#ask(path, z.array(z.unknown()), signal)) {
      const group = groupSchema.safeParse(one);
      if (group.success) groups.push(group.data);
      await turn();
    }
    return groups;
  }

  contacts(number: string, signal: AbortSignal): Promise<readonly ListedContact[]> {
    const path = `/v1/contacts/${encodeURIComponent(number)}?all_recipients=true`;
    return this.#ask(path, z.array(contactSchema), signal);
  }

  async deviceLink(deviceName: string, signal: AbortSignal): Promise<string> {
    const path = `/v1/qrcodelink/raw?device_name=${encodeURIComponent(deviceName)}`;
    return (await this.#ask(path, linkSchema, signal)).device_link_uri;
  }

  /** Throws ParleyError `channel_unavailable`. */
  async #ask<T>(path: string, schema: z.ZodType<T>, signal: AbortSignal): Promise<T> {
    const timeoutMs = Math.min(askTimeoutMs, this.#callTimeoutMs);
    for (let attempt = 1; ; attempt += 1) {
      try {
        const answer = await this.send('GET', path, { signal, timeoutMs });
        if (answer.status !== 200) throw unavailable(path, refusalReason(answer));
        const parsed = schema.safeParse(answer.body);
        if (parsed.success) return parsed.data;
        throw unavailable(path, 'the server there isn’t signal-cli-rest-api');
      } catch (error) {
        if (error instanceof ParleyError) throw error;
        const isOver = attempt >= maxAttempts || signal.aborted || !isTimeout(error);
        if (isOver) throw unavailable(path, noServerReason(error, this.#url), error);
      }
    }
  }
}

async function refuseRedirected(url: string, answer: Dispatcher.ResponseData): Promise<void> {
  const { statusCode: status, headers, body } = answer;
  if (isRedirect(status)) await body.dump();
  refuseRedirect(url, { status, location: headers.location?.toString() });
}

function unavailable(path: string, why: string, cause?: unknown): ParleyError {
  const what = path.split('?')[0]?.replace(/%2B\d+/, '…');
  return channelUnavailable(`${what}: ${why}`, { cause });
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === 'TimeoutError';
}

async function bodyOf(body: AsyncIterable<Uint8Array>): Promise<unknown> {
  const text = await readText(body, longestText);
  try {
    return JSON.parse(text);
  } catch {
    return text; // A proxy's page, nothing at all, or messages with something else in between.
  }
}
