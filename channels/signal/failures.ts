/**
 * Decides what became of a call. signal-cli-rest-api has no idempotency key, answers nearly everything
 * with 400 and words of its own, and sometimes does not answer at all. So the question is always: may it
 * have been applied? A refusal in words was not, nor was what never left. Everything else is unknown for a
 * message, and safe to repeat for edits, deletes and reactions.
 */
import { z } from 'zod';
import { neverLeft, noAnswerFrom } from '#channel-kit/network-fault.ts';
import { ambiguous, isRepeatable, unanswered } from '#channel-kit/send-result.ts';
import type { OutboundContent, SendFailure, SendResult } from '#contracts/outbound.ts';

export type Answer = {
  readonly status: number;
  /** Undefined when it is no JSON. */
  readonly body: unknown;
};

export type Verdict = {
  readonly result: SendResult;
  /** Signal wants a captcha solved for this token before it takes anything else. */
  readonly challenge?: string;
};

/** How long a refused account waits until it asks again, ms; the wait that Signal names is not passed on. */
const limitedForMs = 60_000;
const challengedForMs = 120_000;
/** A proxy that starts anew, or its access rules, are mended within minutes. */
const notPassedOnForMs = 60_000;
/** How proxies refuse; the server itself answers no send so. */
const notPassedOn = new Set([401, 403, 404]);

const errorSchema = z.object({
  error: z.string(),
  challenge_tokens: z.array(z.string()).nullish(),
});

/** The server's reason; undefined for anything that isn't its own refusal. */
export function readError(answer: Answer): z.output<typeof errorSchema> | undefined {
  const parsed = answer.status >= 400 ? errorSchema.safeParse(answer.body) : undefined;
  return parsed?.success ? parsed.data : undefined;
}

/** For logs and faults: no text of anybody's. */
export function refusalReason(answer: Answer): string {
  return readError(answer)?.error.slice(0, 300) ?? `signal-cli-rest-api answered ${answer.status}`;
}

/** Maps an unsuccessful answer to the result of a send. `number`: the bot's own. */
export function refused(answer: Answer, content: OutboundContent, number: string): Verdict {
  const error = readError(answer);
  const reason = refusalReason(answer);
  if (notPassedOn.has(answer.status)) return { result: { kind: 'retry', afterMs: notPassedOnForMs, reason } };
  // Without words of its own it was something in between: a proxy, a load balancer.
  if (error === undefined) return { result: ambiguous(content, reason) };
  if (answer.status === 429 || /rate limit|captcha|proof required/i.test(reason)) {
    return limited(content, { reason, token: error.challenge_tokens?.find((one) => one !== '') });
  }
  if (/process killed as timeout reached/i.test(reason) || answer.status >= 500)
    return { result: ambiguous(content, reason) };
  // The server's own connection to signal-cli.
  if (/^(?:write|dial) tcp /i.test(reason))
    return { result: { kind: 'retry', afterMs: 0, reason, isOutage: true } };
  // Nobody got it, and the server does not say why: no network, or nobody there any more.
  if (/^failed to send message\s*$/i.test(reason)) return { result: { kind: 'retry', afterMs: 0, reason } };
  return { result: { kind: 'failed', failure: failureOf(reason, number), reason } };
}

/**
 * With a token nothing was sent, and nothing will be until somebody solves the captcha. Without one the message
 * may have gone out anyway (signal-cli-rest-api issue 881).
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
      : { kind: 'unknown', reason: `${reason} (it may have been delivered all the same)` },
  };
}

/** 400 has no finer code than its words; these are those of the server and of signal-cli. */
function failureOf(reason: string, number: string): SendFailure {
  const names = (wording: RegExp) => wording.test(reason);
  if (names(/is not registered|account does not exist/i) && reason.includes(number))
    return { kind: 'unauthorised' };
  const isGone =
    names(/unregistered user|is not registered/i) ||
    names(/not a (?:group )?member|group not found|invalid group id|not allowed to send message to group/i);
  return { kind: isGone ? 'unreachable' : 'rejected' };
}

/** The result of a call that threw. `isAborted`: the caller stopped waiting. */
export function faultOf(error: unknown, content: OutboundContent, isAborted: boolean): SendResult {
  return unanswered(error, 'signal-cli-rest-api', { content, isAborted });
}

/** For logs and results; see `noAnswerFrom`. */
export function networkReason(error: unknown): string {
  return noAnswerFrom('signal-cli-rest-api', error);
}

const image = 'bbernhard/signal-cli-rest-api:0.100';

/** Why a question got no answer, and where there is no server at all, what would start one. */
export function noServerReason(error: unknown, apiUrl: string): string {
  const reason = networkReason(error);
  if (!neverLeft(error)) return reason;
  // Without a name and a password, which an address may hold.
  const { protocol, host, port } = new URL(apiUrl);
  return `${reason}: nothing listens at ${protocol}//${host}. Start it with docker compose --profile signal up -d, or alone: docker run -d -p 127.0.0.1:${port || 80}:8080 -e MODE=native -v signal-cli:/home/.local/share/signal-cli ${image}`;
}
