import { clientEnvelope } from '#channel-kit/client-envelope.ts';
import type { EffectFrame } from '#channel-kit/client-frames.ts';
import type { AttachmentRef } from '#contracts/attachment.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import type { ReplyRoute } from '#contracts/route.ts';

/** Every frame here is the owner's, since only the owner can sign in. Unlike elsewhere, a message may name files. */
export function inboundEnvelope(frame: EffectFrame, route: ReplyRoute, sentAt: number): InboundEnvelope {
  const envelope = clientEnvelope(frame, route, sentAt);
  const { event } = envelope;
  if (event.kind !== 'message' || frame.type !== 'send' || frame.attachments === undefined) return envelope;
  const attachments = frame.attachments.map((file) => ({ ...file, kind: kindOf(file.mimeType) }));
  return { ...envelope, event: { ...event, attachments } };
}

function kindOf(mimeType = ''): AttachmentRef['kind'] {
  const kind = mimeType.split('/')[0];
  return kind === 'image' || kind === 'audio' || kind === 'video' ? kind : 'file';
}
