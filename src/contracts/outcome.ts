/** How an accepted message ends. Exactly one each; provisional until the reply's parts have ended. */
export type Outcome = 'answered' | 'silent' | 'merged' | 'cancelled' | 'refused' | 'failed';

/** Rights that the sender of a text gives the agent, from most to least trusted. */
export type Authority = 'owner' | 'member' | 'guest';

const trust: Record<Authority, number> = { owner: 2, member: 1, guest: 0 };

/** Returns the lesser authority: a turn may do no more than the least trusted person whose text triggers it. */
export function lowestAuthority(a: Authority, b: Authority): Authority {
  return trust[a] <= trust[b] ? a : b;
}
