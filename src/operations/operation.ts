/**
 * The contract of operations: what the page, programs and the command line may ask of Parley. From one list (`list.ts`)
 * come the routes, the OpenAPI document and the command line's calls, which run an operation at the running gateway, or
 * on the opened store when none runs.
 */
import type { z } from 'zod';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import type { TokenScope } from '#contracts/token-scope.ts';
import { stripText } from '../logging/redaction.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import type { createKeyedWrite } from '../store/rows/operation-calls.ts';

/**
 * Who may call an operation. `owner`: a signed-in browser, or the holder of the access token. `operator`: only the holder
 * of the access token, such as the command line.
 */
export type Right = 'owner' | 'operator';

/** One operation; its schemas check the input, bound what `run` returns, and describe both to clients. */
export type Operation<Deps, Input extends z.ZodType, Answer extends z.ZodType> = {
  /** Its path below `/api/`, for example `queue/cancel`. */
  readonly name: string;
  /** `GET` changes nothing, and its input consists of texts; a `POST` is safe to repeat. */
  readonly method: 'GET' | 'POST';
  readonly right: Right;
  /** The scope with which a token may call it; absent: no token may. */
  readonly scope?: TokenScope;
  /**
   * Exception to how a call with an idempotency key happens once, which is that its writes and its answer are stored
   * under the key. `own`: the operation takes `key` in its input. `secret`: its answer isn't stored.
   */
  readonly once?: 'own' | 'secret';
  /** Whether its input contains files, so that it may be as large as those. */
  readonly takesFiles?: true;
  /** Largest body of a call, bytes, if it may be larger than others. */
  readonly maxBytes?: number;
  /** One sentence for readers of the API's description. */
  readonly summary: string;
  readonly input?: Input;
  readonly answer: Answer;
  /** The codes with which `run` refuses. */
  readonly refusals?: readonly RefusalCode[];
  /** Resolves with a `Refusal` if it can't be done as asked. Throws faults only, such as an unreachable store. */
  readonly run: (deps: Deps, input: z.output<Input>, caller: Caller) => Promise<z.output<Answer> | Refusal>;
};

/** Who calls. */
export type Caller = {
  /**
   * Recorded as the author of a change: `console` for the holder of the access token, `page` for a browser,
   * `token:<name>` for a program.
   */
  readonly by: string;
  /** The sign-in of the calling browser; undefined for the holder of a token. */
  readonly signIn: string | undefined;
  /** Aborts when the caller has gone away. It only ends waiting. */
  readonly signal: AbortSignal;
};

/** Codes of refusals; each has one HTTP status. */
export type RefusalCode =
  | 'invalid_input'
  | 'not_found'
  | 'ambiguous'
  | 'not_possible'
  | 'too_many_tries'
  | 'key_reused';

/** Says why an operation wasn't done; `text` is for people. */
export class Refusal {
  readonly code: RefusalCode;
  readonly text: string | undefined;
  constructor(code: RefusalCode, text?: string) {
    this.code = code;
    this.text = text;
  }
}

/** Refuses an id that begins no id of a `noun`, or several; `list` is the command that lists them. */
export function refuseId(
  found: { readonly kind: 'none' | 'several' },
  id: string,
  { noun, list }: { readonly noun: string; readonly list: string },
): Refusal {
  const see = `See: ${parleyCommand} ${list}`;
  return found.kind === 'none'
    ? new Refusal('not_found', `${stripText(id)} isn't a ${noun}. ${see}`)
    : new Refusal('ambiguous', `${stripText(id)} matches several ${noun}s. ${see}`);
}

/** Returns the operation; infers the types of its schemas. */
export function operation<Deps, Input extends z.ZodType, Answer extends z.ZodType>(
  one: Operation<Deps, Input, Answer>,
): Operation<Deps, Input, Answer> {
  return one;
}

export type StoreDeps = { readonly store: Pick<Store, 'read' | 'write'> };

export type ChangeDeps = StoreDeps & {
  /** Dispatches the effects of a commit. Without a running gateway the next one finds them in the store. */
  start(effects: Effects): void;
};

export type OnceDeps = StoreDeps & {
  /** Runs a step of the store once per idempotency key. */
  readonly keyedWrite: ReturnType<typeof createKeyedWrite>;
};
