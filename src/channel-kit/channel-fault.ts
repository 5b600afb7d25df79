import { ParleyError } from '#contracts/errors.ts';

export type FaultDetail = {
  /** The wait that the network asks for, ms. */
  readonly afterMs?: number | undefined;
  readonly cause?: unknown;
};

/** Creates the fault for a network that doesn't answer properly; the call is retried later. */
export function channelUnavailable(what: string, { afterMs, cause }: FaultDetail = {}): ParleyError {
  const retry = { kind: 'later', ...(afterMs === undefined ? {} : { afterMs }) } as const;
  return new ParleyError('channel_unavailable', what, { cause, retry });
}
