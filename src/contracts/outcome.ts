/** How an accepted message ends. Exactly one each; provisional until the reply's parts have ended. */
export type Outcome = 'answered' | 'silent' | 'merged' | 'cancelled' | 'refused' | 'failed';

/** Rights that a text's sender gives the agent, from most to least trusted. */
export type Authority = 'owner' | 'member' | 'guest';

const trust: Record<Authority, number> = { owner: 2, member: 1, guest: 0 };

/** The least trusted of those whose text triggers a turn bounds what the turn may do. */
export function leastTrusted(a: Authority, b: Authority): Authority {
  return trust[a] <= trust[b] ? a : b;
}
