import { clientEnvelope } from '#channel-kit/client-envelope.ts';
import type { EffectFrame } from '#channel-kit/client-frames.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import { terminalOwner } from './ids.ts';

/** A connected client is the owner. `sentAt` is the gateway's time of arrival, ms. */
export function inboundEnvelope(frame: EffectFrame, route: ReplyRoute, sentAt: number): InboundEnvelope {
  return clientEnvelope(frame, { route, owner: terminalOwner, sentAt });
}
