import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { TokenScope } from '#contracts/token-scope.ts';
import { atConsole, atPage } from '../commands/pair.ts';
import { type GatewayDeps, operations } from '../operations/list.ts';
import { type Caller, Refusal, type RefusalCode } from '../operations/operation.ts';
import { runOperation } from '../operations/run-once.ts';
import { type Identity, signInIdOf } from './identity.ts';
import { refuse } from './request-auth.ts';
import type { RouteAccess } from './request-guard.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route's entry in the API's description; `none` for routes that only the page, browsers and networks use. */
    readonly call?: ApiCall | 'none';
  }
}

/** A call of the API. Its schemas check the input, bound what the handler returns, and describe both to clients. */
export type ApiCall<Input extends z.ZodType = z.ZodType, Answer extends z.ZodType = z.ZodType> = {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** One sentence that says what the call does, for readers of the API's description. */
  readonly summary: string;
  readonly access: Exclude<RouteAccess, 'webhook'>;
  /** The scope with which a token may make it, or several of which one is enough; absent: no token may. */
  readonly scope?: TokenScope | readonly TokenScope[];
  /** The query of a GET, the body of a POST. */
  readonly input?: Input;
  /** Absent: the answer has no body. */
  readonly answer?: Answer;
  /** Default: JSON. */
  readonly answerType?: string;
  /** Further statuses with the same kind of body. */
  readonly alsoWith?: readonly number[];
  /** A WebSocket's messages, instead of an answer. */
  readonly frames?: { readonly client: z.ZodType; readonly server: z.ZodType };
  /** Whether an `Idempotency-Key` makes repetitions of the call count once. */
  readonly takesKey?: boolean;
  /** Largest body, bytes, and as long to send as a file; absent: the server's own limits. */
  readonly maxBytes?: number;
  /** The call's own refusal codes. */
  readonly refusals?: readonly (keyof typeof refusalStatus)[];
};

/** The HTTP status of each code with which a call itself refuses. */
export const refusalStatus = {
  invalid_input: 400,
  wrong_token: 401,
  not_found: 404,
  ambiguous: 409,
  not_possible: 409,
  key_reused: 409,
  too_many_tries: 429,
} as const satisfies Record<RefusalCode | 'wrong_token', number>;

type Exchange = { readonly request: FastifyRequest; readonly reply: FastifyReply };

/** Adds the call to the server. Input that doesn't match its schema is refused and never reaches `handle`. */
export function serveCall<Input extends z.ZodType, Answer extends z.ZodType>(
  app: FastifyInstance,
  call: ApiCall<Input, Answer>,
  handle: (input: z.output<Input>, exchange: Exchange) => Promise<z.output<Answer> | FastifyReply>,
): void {
  const { method, path: url, access, scope, input, maxBytes } = call;
  const handler = async (request: FastifyRequest, reply: FastifyReply) => {
    const parsed = input?.safeParse(method === 'GET' ? request.query : request.body);
    if (parsed?.success === false) return refuse(reply, { status: 400, code: 'invalid_request' });
    // Without a schema the handler takes no input.
    return handle(parsed?.data as z.output<Input>, { request, reply });
  };
  const config = { access, call, ...(scope && { scope }), ...(maxBytes && { isUpload: true }) };
  app.route({ method, url, config, handler, ...(maxBytes && { bodyLimit: maxBytes }) });
}

/** Serves every operation at `/api/<name>`, to those who have its right. */
export function serveOperations(app: FastifyInstance, deps: GatewayDeps, maxFileBytes: number): void {
  for (const one of operations) {
    const { name, right, run: _, once: _once, takesFiles, refusals = [], ...described } = one;
    const takesKey = one.method === 'POST';
    const call = {
      ...{ ...described, path: `/api/${name}`, access: right, takesKey },
      ...(takesFiles && { maxBytes: bodyBytesFor(maxFileBytes) }),
      refusals: takesKey ? [...new Set([...refusals, 'key_reused' as const])] : refusals,
    };
    serveCall(app, call, async (input, exchange) => {
      const key = keyOf(exchange.request);
      if (key === null)
        return refuse(exchange.reply, { status: 400, code: 'invalid_request', text: keyText });
      const answer = await runOperation(one, { deps, input, caller: callerOf(exchange), key });
      if (!(answer instanceof Refusal)) return answer;
      const { code, text } = answer;
      return refuse(exchange.reply, { status: refusalStatus[code], code, ...(text && { text }) });
    });
  }
}

/** Room for the rest of a message. */
const spareBytes = 256 * 1024;

/** Base64 makes a file a third larger. */
function bodyBytesFor(fileBytes: number): number {
  return Math.ceil(fileBytes * 1.34) + spareBytes;
}

/** The header with which a program calls an operation once, however often the request arrives. */
export const keyHeader = 'idempotency-key';
const keyText = 'An Idempotency-Key has 1 to 200 printable ASCII characters.';

/** Returns null for an invalid key. */
function keyOf({ headers }: FastifyRequest): string | undefined | null {
  const key = headers[keyHeader];
  if (key === undefined) return undefined;
  return typeof key === 'string' && /^[\x21-\x7e]{1,200}$/.test(key) ? key : null;
}

function callerOf({ request, reply }: Exchange): Caller {
  const gone = new AbortController();
  reply.raw.once('close', () => gone.abort());
  const signIn = signInIdOf(request.identity);
  return { by: authorOf(request.identity), signIn, signal: gone.signal };
}

function authorOf(identity: Identity | undefined): string {
  if (identity?.kind === 'token') return `token:${identity.token.name}`;
  return identity?.kind === 'session' ? atPage : atConsole;
}
