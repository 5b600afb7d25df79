/** Errors in the shape of OpenAI's API, for every route below `/v1/`, whether it exists or not. */
import { parleyCommand } from '#channel-kit/own-commands.ts';

/** Says whether clients of this address expect that shape. */
export function speaksOpenAi(url: string): boolean {
  return url.startsWith('/v1/');
}

type ErrorFacts = {
  readonly status: number;
  readonly code: string;
  readonly text?: string | undefined;
  readonly param?: string | null;
};

/** Sentences for the refusals of the server itself; others bring their own. */
const messages: Readonly<Partial<Record<string, string>>> = {
  wrong_token: `This isn't a valid token of this Parley. See: ${parleyCommand} tokens list`,
  sign_in_first: `Send a token of this Parley as “Authorization: Bearer …”. To create one: ${parleyCommand} tokens create`,
  too_many_tries: 'Too many wrong tokens came from this address. Please wait a minute.',
  not_found: 'There is no such call. Parley has /v1/models, /v1/chat/completions and /v1/responses.',
  json_expected: 'Send the body as JSON, with “Content-Type: application/json”.',
  internal: 'Something went wrong in Parley. Its log says more.',
  token_required: 'Send a token as “Authorization: Bearer …”; a browser’s sign-in isn’t enough.',
  origin_not_allowed: 'Browsers may not call this address from other pages.',
};

/** Returns the body of the answer. */
export function openAiError({ status, code, text, param = null }: ErrorFacts) {
  const tooLarge = status === 413 ? 'The body is too large.' : undefined;
  const message = tooLarge ?? text ?? messages[code] ?? 'The request isn’t valid.';
  return { error: { message, type: typeOf(status), param, code } };
}

function typeOf(status: number): string {
  if (status === 429) return 'rate_limit_error';
  return status >= 500 ? 'server_error' : 'invalid_request_error';
}
