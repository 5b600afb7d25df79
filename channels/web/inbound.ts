/** A frame here is the owner's: a signed-in person is the owner. The same on every channel of clients. */
export { clientEnvelope as inboundEnvelope } from '#channel-kit/client-envelope.ts';
