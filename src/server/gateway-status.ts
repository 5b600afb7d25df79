/** Content of the page's status area and `/readyz`. Holds no secret: names, states and reasons only. */
export type GatewayStatus = {
  readonly version: string;
  /** When this process started, ms since the epoch. */
  readonly startedAt: number;
  readonly model: {
    readonly name: string;
    /** True for the scripted model that answers without a key: shown as such. */
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
  /** Start of a problem, and next retry of the channel, ms since the epoch. */
  readonly since?: number;
  readonly nextTryAt?: number;
};

export type Readiness = {
  /** Names of what is not there, for example `store` or `telegram`; empty when ready. */
  readonly missing: readonly string[];
  /** Everything that is looked at, those that are missing included. */
  readonly components?: readonly Component[];
};

/** Shown without a sign-in: a name; why it is down or degraded; since when, and when it is tried again, in UTC. */
export type Component = {
  readonly name: string;
  readonly state: 'ok' | 'down';
  readonly reason?: string;
  readonly since?: string;
  readonly nextTryAt?: string;
};
