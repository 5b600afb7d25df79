import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { refuse } from './request-auth.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route's entry in the API's description; `none` for what only the page, browsers and networks ask for. */
    readonly call?: ApiCall | 'none';
  }
}

/** A call of the API. Its schemas check what comes in, bound what a handler returns, and describe both to clients. */
export type ApiCall<Input extends z.ZodType = z.ZodType, Answer extends z.ZodType = z.ZodType> = {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** One sentence for its reader: what the call does. */
  readonly summary: string;
  /** Default: only who is signed in. */
  readonly access?: 'public';
  /** The query of a GET, the body of a POST. */
  readonly input?: Input;
  /** Absent: the answer has no body. */
  readonly answer?: Answer;
  /** Default: JSON. */
  readonly answerType?: string;
  /** Further statuses with such a body. */
  readonly alsoWith?: readonly number[];
  /** A WebSocket's messages, in place of an answer. */
  readonly frames?: { readonly client: z.ZodType; readonly server: z.ZodType };
  /** Codes of its own refusals, by status. */
  readonly refusals?: Readonly<Record<number, readonly string[]>>;
};

type Exchange = { readonly request: FastifyRequest; readonly reply: FastifyReply };

/** Puts the call on the server: an input that doesn't fit is refused, and never reaches `handle`. */
export function serveCall<Input extends z.ZodType, Answer extends z.ZodType>(
  app: FastifyInstance,
  call: ApiCall<Input, Answer>,
  handle: (input: z.output<Input>, exchange: Exchange) => Promise<z.output<Answer> | FastifyReply>,
): void {
  const { method, path: url, access = 'signed-in', input } = call;
  const handler = async (request: FastifyRequest, reply: FastifyReply) => {
    const parsed = input?.safeParse(method === 'GET' ? request.query : request.body);
    if (parsed?.success === false) return refuse(reply, { status: 400, code: 'invalid_request' });
    // Without a schema the handler takes nothing.
    return handle(parsed?.data as z.output<Input>, { request, reply });
  };
  app.route({ method, url, config: { access, call }, handler });
}
