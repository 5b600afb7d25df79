/** Every frame here is the owner's, since only the owner of the file may open it. All client channels share this. */
export { clientEnvelope as inboundEnvelope } from '#channel-kit/client-envelope.ts';
