/**
 * Commits that may have claimed a conversation for this process without its knowledge, because they failed or their
 * answers were lost. Such a claim never starts a call, so the next claim takes it over by its id.
 */
import { hasCode } from '#contracts/errors.ts';

type NamedClaim = { readonly conversationKey: string; readonly claimId: string };

export class UnansweredClaims {
  readonly #ids = new Map<string, readonly string[]>();

  of(conversationKey: string): readonly string[] {
    return this.#ids.get(conversationKey) ?? [];
  }

  /** Runs a commit and keeps its id if it fails. Rejects with the commit's error. */
  async watch<T>({ conversationKey, claimId }: NamedClaim, commit: () => Promise<T>): Promise<T> {
    try {
      return await commit();
    } catch (error) {
      // A commit that was rejected because of another holder's epoch has claimed nothing.
      if (!hasCode(error, 'stale_epoch')) this.#keep(conversationKey, [...this.of(conversationKey), claimId]);
      throw error;
    }
  }

  /** Drops ids that the store was asked for: their claim was taken over, or didn't exist. */
  forget(conversationKey: string, ids: readonly string[]): void {
    this.#keep(
      conversationKey,
      this.of(conversationKey).filter((id) => !ids.includes(id)),
    );
  }

  #keep(conversationKey: string, ids: readonly string[]): void {
    if (ids.length === 0) this.#ids.delete(conversationKey);
    else this.#ids.set(conversationKey, [...new Set(ids)]);
  }
}
