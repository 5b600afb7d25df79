/** What the page's status area and `/readyz` tell. Holds no secret: names, states and reasons only. */
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
  /** What the gateway lacks now, as `/readyz` names it, in words for its owner; empty when it is ready. */
  readonly problems?: readonly StatusProblem[];
};

export type StatusProblem = { readonly id: string; readonly text: string };

export type ChannelStatus = {
  readonly id: string;
  readonly state: 'on' | 'off' | 'trouble';
  /** The account's name when on, else why it is off or in trouble, and what to do. */
  readonly detail: string;
};

export type Readiness = {
  /** Names of what is not there yet, for example `store`; empty when ready. */
  readonly missing: readonly string[];
};
