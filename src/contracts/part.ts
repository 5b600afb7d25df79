import type { OutboundContent } from './outbound.ts';
import type { ReplyRoute } from './route.ts';

/**
 * One action on a platform: a message of an answer, a file, an edit of the preview, one of Parley's own texts. The reply
 * pipeline plans it, the outbox stores it under a key, a delivery attempt performs it.
 */
export type Part<Content = OutboundContent, Purpose = 'reply' | 'notice'> = {
  /** Where it goes, with the message that it quotes. */
  readonly route: ReplyRoute;
  readonly content: Content;
  /** `reply`: the agent's words; `notice`: Parley's own text, or the removal of a preview; `tool`: sent by a tool. */
  readonly purpose: Purpose;
};
