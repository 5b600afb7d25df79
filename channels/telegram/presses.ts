/** Answers presses: until the bot does, the pressed button keeps spinning. */
import type { Acceptance } from '#contracts/acceptance.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import type { Log } from '#contracts/log.ts';
import type { BotApi } from './bot-api.ts';
import { reasonOf } from './failures.ts';
import { callbackOf } from './inbound.ts';

export type PressDeps = {
  readonly api: () => Pick<BotApi, 'answerCallbackQuery'>;
  readonly log: Log;
  readonly callTimeoutMs: number;
};

/** Telegram shows at most so much, UTF-16 units. */
const longestAnswer = 200;

/**
 * Tells each person who pressed what became of it; a press that an earlier process has stored is answered without
 * words. Never waits, never throws: a lost answer costs the person a few seconds, and the message says the result.
 */
export function answerPresses(
  { api, log, callTimeoutMs }: PressDeps,
  events: readonly InboundEnvelope[],
  acceptances: readonly Acceptance[],
): void {
  for (const [index, envelope] of events.entries()) {
    const id = callbackOf(envelope);
    if (id === undefined) continue;
    const acceptance = acceptances[index];
    const text = acceptance?.kind === 'pressed' ? acceptance.text.slice(0, longestAnswer).toWellFormed() : '';
    const answer = { callback_query_id: id, ...(text !== '' && { text }) };
    api()
      .answerCallbackQuery(answer, AbortSignal.timeout(callTimeoutMs))
      .catch((error: unknown) => log.info({ reason: reasonOf(error) }, 'telegram.press-not-answered'));
  }
}
