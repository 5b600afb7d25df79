import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { refuse } from './request-auth.ts';

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
  /** Default: only signed-in clients. */
  readonly access?: 'public';
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
  /** The call's own refusal codes, by status. */
  readonly refusals?: Readonly<Record<number, readonly string[]>>;
};

type Exchange = { readonly request: FastifyRequest; readonly reply: FastifyReply };

/** Adds the call to the server. Input that doesn't match its schema is refused and never reaches `handle`. */
export function serveCall<Input extends z.ZodType, Answer extends z.ZodType>(
  app: FastifyInstance,
  call: ApiCall<Input, Answer>,
  handle: (input: z.output<Input>, exchange: Exchange) => Promise<z.output<Answer> | FastifyReply>,
): void {
  const { method, path: url, access = 'signed-in', input } = call;
  const handler = async (request: FastifyRequest, reply: FastifyReply) => {
    const parsed = input?.safeParse(method === 'GET' ? request.query : request.body);
    if (parsed?.success === false) return refuse(reply, { status: 400, code: 'invalid_request' });
    // Without a schema the handler takes no input.
    return handle(parsed?.data as z.output<Input>, { request, reply });
  };
  app.route({ method, url, config: { access, call }, handler });
}
