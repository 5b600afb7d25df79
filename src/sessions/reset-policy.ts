/** Decides when a conversation restarts on its own. Evaluated on the next message, so no timers are needed. */

/** If both are set, whichever is due first applies. Empty means never. */
export type ResetPolicy = {
  /** 0 to 23, in the gateway's time zone. */
  readonly dailyAtHour?: number;
  readonly idleMinutes?: number;
};

export type SessionType = 'dm' | 'group' | 'thread';

/** The configured policies: one per type, with overrides by channel id. */
export type ResetSettings = { readonly [type in SessionType]: ResetPolicy } & {
  readonly channels: { readonly [channel: string]: ResetPolicy };
};

/** Returns the channel's policy if it has one, else that of the type. Policies aren't merged. */
export function resetPolicyFor(
  settings: ResetSettings,
  session: { readonly type: SessionType; readonly channel: string },
): ResetPolicy {
  const { channels } = settings;
  const ofChannel = Object.hasOwn(channels, session.channel) ? channels[session.channel] : undefined;
  return ofChannel ?? settings[session.type];
}

/** `timeZone` is an IANA name validated by the configuration (an unknown one throws RangeError). Time in ms. */
type Moment = { readonly policy: ResetPolicy; readonly now: number; readonly timeZone: string };

/** Returns a predicate that says whether a last activity at the given time calls for a reset at the moment. */
function dueBefore({ policy, now, timeZone }: Moment): (lastActivityAt: number) => boolean {
  const { dailyAtHour, idleMinutes } = policy;
  const dayOf = dailyAtHour === undefined ? undefined : resetDayIn(timeZone, dailyAtHour);
  const today = dayOf?.(now) ?? 0;
  return (lastActivityAt) => {
    if (now <= lastActivityAt) return false;
    if (idleMinutes !== undefined && now - lastActivityAt >= idleMinutes * 60_000) return true;
    return dayOf !== undefined && dayOf(lastActivityAt) < today;
  };
}

/**
 * Returns the time such that a reset is due at `now` if the last activity was before it; undefined if none is ever due.
 * Found by bisection, so that all calendar logic stays in one place.
 */
export function resetBefore(moment: Moment): number | undefined {
  const { policy, now } = moment;
  if (policy.dailyAtHour === undefined && policy.idleMinutes === undefined) return undefined;
  const isDue = dueBefore(moment);
  let [due, fresh] = [now - Math.max(policy.idleMinutes ?? 0, 3 * 24 * 60) * 60_000, now];
  while (fresh - due > 1) {
    const middle = Math.floor((due + fresh) / 2);
    if (isDue(middle)) due = middle;
    else fresh = middle;
  }
  return fresh;
}

/**
 * Numbers the days, which begin at `hour` local time. Comparing days rather than instants is also correct when clocks
 * change and that hour occurs twice or never.
 */
function resetDayIn(timeZone: string, hour: number): (at: number) => number {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
  });
  return (at) => {
    const parts = new Map(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
    const part = (name: Intl.DateTimeFormatPartTypes) => parts.get(name) ?? 0;
    const day = Date.UTC(part('year'), part('month') - 1, part('day')) / 86_400_000;
    return part('hour') < hour ? day - 1 : day;
  };
}
