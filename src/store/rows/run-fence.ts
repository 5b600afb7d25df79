/** The run that writes, and the epoch that proves its right to do so. */
export type RunFence = { readonly laneKey: string; readonly epoch: number; readonly runId: string };
