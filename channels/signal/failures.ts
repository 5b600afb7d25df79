/**
 * Decides the outcome of a call. signal-cli-rest-api has no idempotency key, answers nearly everything with 400 and its
 * own wording, and sometimes doesn't answer at all. So the question is always whether the call may have been applied.
 * One refused in the server's own words wasn't, nor was one that never left. Otherwise the outcome is unknown for a
 * message; edits, deletes and reactions are safe to repeat.
 */
import { z } from 'zod';
import { neverLeft, noAnswerFrom } from '#channel-kit/network-fault.ts';
import { RedirectRefused } from '#channel-kit/redirects.ts';
import { ambiguous, isRepeatable, unanswered } from '#channel-kit/send-result.ts';
import type { ChannelTrouble, TroubleCode } from '#contracts/channel.ts';
import type { OutboundContent, SendFailure, SendResult } from '#contracts/outbound.ts';

export type Answer = {
  readonly status: number;
  /** Text if it isn't JSON. */
  readonly body: unknown;
};

export type Verdict = {
  readonly result: SendResult;
  /** Signal wants a captcha solved for this token before it accepts anything else. */
  readonly challenge?: string;
};

/** How long a rate-limited account waits before it tries again, ms; Signal's own wait isn't passed on by the server. */
const limitedForMs = 60_000;
const challengedForMs = 120_000;
/** A proxy that restarts, or has wrong access rules, is fixed within minutes. */
const notPassedOnForMs = 60_000;
/** Statuses with which proxies refuse; the server itself never answers a send with these. */
const notPassedOn = new Set([401, 403, 404]);

const errorSchema = z.object({
  error: z.string(),
  challenge_tokens: z.array(z.string()).nullish(),
});

/** Returns the server's reason; undefined for anything that isn't its own refusal. */
export function readError(answer: Answer): z.output<typeof errorSchema> | undefined {
  const parsed = answer.status >= 400 ? errorSchema.safeParse(answer.body) : undefined;
  return parsed?.success ? parsed.data : undefined;
}

/** Returns a reason for logs and faults; it contains no message text. */
export function refusalReason(answer: Answer): string {
  return readError(answer)?.error.slice(0, 300) ?? `signal-cli-rest-api answered ${answer.status}`;
}

/** Says whether the server ended signal-cli, which took too long; what it had done by then stays done. */
export function isKilled(reason: string): boolean {
  return /process killed as timeout reached/i.test(reason);
}

/** How the server refuses what signal-cli answered, once a message was sent, if it can't read that. */
const notReadBack =
  /^(?:strconv\.ParseInt: parsing |invalid character |Couldn't process request - invalid signal-cli response)/;
/** The time of a message in it: release 0.100 repeats signal-cli's lines as one quoted text (issues 407, 409 and 426). */
const sentAt = /(?:"|\\n)(\d{13})(?:"|\\n)/;

/**
 * Returns the success in a refusal, in the form of one: signal-cli sent the message, but reported more than the server
 * can read, such as a member of the group that it doesn't trust.
 */
export function sentAnyway(answer: Answer): { readonly timestamp: string } | undefined {
  const reason = readError(answer)?.error ?? '';
  const timestamp = notReadBack.test(reason) ? sentAt.exec(reason)?.[1] : undefined;
  return timestamp === undefined ? undefined : { timestamp };
}

/** Maps an unsuccessful answer to the result of a send. `number`: the bot's own. */
export function refused(answer: Answer, content: OutboundContent, number: string): Verdict {
  const error = readError(answer);
  const reason = refusalReason(answer);
  if (notPassedOn.has(answer.status)) return { result: { kind: 'retry', afterMs: notPassedOnForMs, reason } };
  // Without the server's own wording, something in between answered: a proxy or a load balancer.
  if (error === undefined) return { result: ambiguous(content, reason) };
  if (answer.status === 429 || /rate limit|captcha|proof required/i.test(reason)) {
    return limited(content, { reason, token: error.challenge_tokens?.find((one) => one !== '') });
  }
  if (isKilled(reason) || notReadBack.test(reason) || answer.status >= 500)
    return { result: ambiguous(content, reason) };
  // The server's own connection to signal-cli.
  if (/^(?:write|dial) tcp /i.test(reason))
    return { result: { kind: 'retry', afterMs: 0, reason, isOutage: true } };
  // Nobody received it, and the server doesn't say why: it has no network, or the recipient is gone.
  if (/^failed to send message\s*$/i.test(reason)) return { result: { kind: 'retry', afterMs: 0, reason } };
  return { result: { kind: 'failed', failure: failureOf(reason, number), reason } };
}

/**
 * With a token, nothing was sent, and nothing will be until somebody solves the captcha. Without one, the message may
 * have gone out anyway (signal-cli-rest-api issue 881).
 */
function limited(
  content: OutboundContent,
  { reason, token }: { readonly reason: string; readonly token: string | undefined },
): Verdict {
  if (token !== undefined)
    return { result: { kind: 'retry', afterMs: challengedForMs, reason }, challenge: token };
  return {
    result: isRepeatable(content)
      ? { kind: 'retry', afterMs: limitedForMs, reason }
      : { kind: 'unknown', reason: `${reason} (it may have been delivered anyway)` },
  };
}

/** A 400 says more only in its text; the wording matched here is the server's and signal-cli's. */
function failureOf(reason: string, number: string): SendFailure {
  const names = (wording: RegExp) => wording.test(reason);
  if (names(/is not registered|account does not exist/i) && reason.includes(number))
    return { kind: 'unauthorised' };
  const isGone =
    names(/unregistered user|is not registered/i) ||
    names(/not a (?:group )?member|group not found|invalid group id|not allowed to send message to group/i);
  return { kind: isGone ? 'unreachable' : 'rejected' };
}

/** Returns the result of a call that threw. `isAborted`: the caller stopped waiting. */
export function faultOf(error: unknown, content: OutboundContent, isAborted: boolean): SendResult {
  return unanswered(error, 'signal-cli-rest-api', { content, isAborted });
}

/** For logs and results; see `noAnswerFrom`. */
export function networkReason(error: unknown): string {
  return noAnswerFrom('signal-cli-rest-api', error);
}

const image = 'bbernhard/signal-cli-rest-api:0.100';

/** Returns why a call got no answer and, if there is no server at all, how to start one. */
export function noServerReason(error: unknown, apiUrl: string): string {
  const reason = networkReason(error);
  if (!neverLeft(error) || error instanceof RedirectRefused) return reason;
  // Without the user name and password that an address may contain.
  const { protocol, host, port } = new URL(apiUrl);
  return `${reason}: nothing listens at ${protocol}//${host}. Start it with docker compose --profile signal up -d, or alone: docker run -d -p 127.0.0.1:${port || 80}:8080 -e MODE=native -v signal-cli:/home/.local/share/signal-cli ${image}`;
}

/** Problems that can coexist; the first in this order is reported. With `identity` alone the channel still works. */
const codes = {
  captcha: 'captcha',
  loss: 'not-stored',
  connection: 'no-answer',
  store: 'not-stored',
  identity: 'no-answer',
} as const satisfies Readonly<Record<string, TroubleCode>>;
type Source = keyof typeof codes;
const sources = Object.keys(codes) as Source[];

/** Tracks several possible problems; the channel is healthy again when there is none. */
export class ChannelHealth {
  readonly #problems = new Map<Source, string>();
  #report: ((problem: ChannelTrouble | undefined) => void) | undefined;
  #told: string | undefined;

  /** Sets the listener from now on; undefined for none. */
  tellTo(tell: ((problem: ChannelTrouble | undefined) => void) | undefined): void {
    this.#report = tell;
    this.#told = undefined;
    this.#say();
  }

  set(source: Source, problem: string | undefined): void {
    if (problem === undefined) this.#problems.delete(source);
    else this.#problems.set(source, problem);
    this.#say();
  }

  has(source: Source): boolean {
    return this.#problems.has(source);
  }

  #say(): void {
    const source = sources.find((one) => this.#problems.has(one));
    const detail = source && this.#problems.get(source);
    if (detail === this.#told) return;
    this.#told = detail;
    if (source === undefined || detail === undefined) {
      this.#report?.(undefined);
      return;
    }
    const kind = source === 'captcha' ? 'challenge' : 'unreachable';
    this.#report?.({ kind, code: codes[source], detail, ...(source === 'identity' && { isDegraded: true }) });
  }
}
