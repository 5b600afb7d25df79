/** Who put an item into its lane: an event of a network, or somebody inside Parley. */
export type ItemSource = 'platform' | 'api' | 'schedule' | 'child' | 'task' | 'job';

/**
 * How an item meets the run at work: as the lane's mode says; joining it in any mode, if it has the same
 * target and authority; or by itself, joining no run and joined by nothing.
 */
export type Reach = 'mode' | 'always' | 'alone';
