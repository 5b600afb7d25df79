/** Decides what a person sees when there is nothing to send and something failed (spec 9.4). */
import type { Capabilities } from '#contracts/capabilities.ts';
import { plainText } from '#contracts/formatted-text.ts';
import type { MessageId } from '#contracts/ids.ts';
import { failedReaction, type OutboundContent } from '#contracts/outbound.ts';
import { fillNotice, type Notices } from '../texts/notices.ts';

export type Failure =
  /** A tool of the run failed and the model had nothing to say about it. */
  | { readonly kind: 'tool'; readonly tool: string }
  /** The run itself failed. `notice` says how, if more is known. */
  | { readonly kind: 'internal'; readonly notice?: string };

export type FallbackScene = {
  readonly chatKind: 'dm' | 'group';
  readonly capabilities: Pick<Capabilities, 'canReact'>;
  readonly notices: Notices;
  /** The message that started the run: what a reaction hangs on. */
  readonly replyTo?: MessageId;
};

/** A tool failure is one short line; an internal one a line in a DM and a reaction in a group. */
export function shapeFallback(failure: Failure, scene: FallbackScene): OutboundContent {
  const { chatKind, capabilities, notices, replyTo } = scene;
  if (failure.kind === 'tool') {
    return { kind: 'text', text: plainText(fillNotice(notices.toolFailure, { tool: failure.tool })) };
  }
  if (chatKind === 'group' && capabilities.canReact && replyTo !== undefined) {
    return { kind: 'reaction', messageId: replyTo, emoji: failedReaction };
  }
  return { kind: 'text', text: plainText(failure.notice ?? notices.internalFailure) };
}
