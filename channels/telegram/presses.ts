/** Answers presses: until a press is answered, its button keeps spinning. */
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

/** Telegram shows at most this much, in UTF-16 code units. */
const longestAnswer = 200;

/**
 * Shows each person who pressed a button the result; a press that an earlier process stored is answered without text.
 * Never waits, never throws: a lost answer costs the person a few seconds, and the message shows the result.
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
