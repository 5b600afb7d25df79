import type { HookEvents } from '#contracts/hook.ts';
import type { Hooks } from './hooks.ts';

/** A text that may be sent, or the reason why not; `by` names the hook. */
export type PreparedMessage =
  | { readonly kind: 'send'; readonly text: string }
  | { readonly kind: 'cancelled'; readonly by: string; readonly reason: string };

/** Asks `message_sending` about a complete text before it is split into messages. */
export async function prepareMessage(
  hooks: Hooks | undefined,
  message: HookEvents['message_sending'],
): Promise<PreparedMessage> {
  if (!hooks?.has('message_sending')) return { kind: 'send', text: message.text };
  const { event, end } = await hooks.decide('message_sending', message);
  if (end === undefined) return { kind: 'send', text: event.text };
  const reason = end.kind === 'failed' ? 'its check failed' : end.decision.reason;
  return { kind: 'cancelled', by: end.owner, reason };
}
