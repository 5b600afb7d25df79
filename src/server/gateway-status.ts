/** Content of the page's status area and `/readyz`. It contains no secret: names, states and reasons only. */
export type GatewayStatus = {
  readonly version: string;
  /** When this process started, ms since the epoch. */
  readonly startedAt: number;
  readonly model: {
    readonly name: string;
    /** True for the scripted model that answers without a key, which is shown as such. */
    readonly isDemo: boolean;
  };
  readonly channels: readonly ChannelStatus[];
  /** Missing components other than channels, named as in `/readyz`, with texts for the owner. */
  readonly problems?: readonly StatusProblem[];
};

/** Something the gateway lacks, with a sentence for its owner. */
export type StatusProblem = { readonly id: string; readonly text: string };

export type ChannelStatus = {
  readonly id: string;
  /** `standby`: another process receives for the account. */
  readonly state: 'on' | 'off' | 'standby' | 'trouble';
  /** The account's name when on, else why it is off or in trouble, and what to do. */
  readonly detail: string;
  /** Start of a problem, and the channel's next retry, ms since the epoch. */
  readonly since?: number;
  readonly nextTryAt?: number;
};

export type Readiness = {
  /** Names of missing components, for example `store` or `telegram`; empty when ready. */
  readonly missing: readonly string[];
  /** All components that were checked, including the missing ones. */
  readonly components?: readonly Component[];
};

/** Shown without a sign-in: its name, why it is down or degraded, since when, and the next retry, both in UTC. */
export type Component = {
  readonly name: string;
  readonly state: 'ok' | 'down';
  readonly reason?: string;
  readonly since?: string;
  readonly nextTryAt?: string;
};
