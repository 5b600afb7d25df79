/** A delivery here is a frame to each connected client, as on every client channel. */
export { clientDelivery as outboundPlan } from '#channel-kit/client-delivery.ts';
