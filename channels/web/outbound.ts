/** A delivery here is a frame to whoever looks: the same as on every channel of clients. */
export { clientDelivery as outboundPlan } from '#channel-kit/client-delivery.ts';
