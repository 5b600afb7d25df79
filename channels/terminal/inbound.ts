/** A frame here is the owner's: who may open the socket is the owner of its file. The same on every channel of clients. */
export { clientEnvelope as inboundEnvelope } from '#channel-kit/client-envelope.ts';
