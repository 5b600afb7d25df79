/** A delivery here is a frame to each connected client: the same as on every channel of clients. */
export { clientDelivery as outboundPlan } from '#channel-kit/client-delivery.ts';
