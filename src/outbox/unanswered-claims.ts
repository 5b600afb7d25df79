/**
 * Commits that may have claimed a conversation for this process without its knowing: they failed, or their answers were
 * lost. No call of such a claim is ever begun, so the next claim takes it over by its id.
 */
import { hasCode } from '#contracts/errors.ts';

type NamedClaim = { readonly conversationKey: string; readonly claimId: string };

export class UnansweredClaims {
  readonly #ids = new Map<string, readonly string[]>();

  of(conversationKey: string): readonly string[] {
    return this.#ids.get(conversationKey) ?? [];
  }

  /** Keeps the id of a commit that fails. Rejects with what the commit rejects with. */
  async watch<T>({ conversationKey, claimId }: NamedClaim, commit: () => Promise<T>): Promise<T> {
    try {
      return await commit();
    } catch (error) {
      // A commit that another holder's epoch refuses has claimed nothing.
      if (!hasCode(error, 'stale_epoch')) this.#keep(conversationKey, [...this.of(conversationKey), claimId]);
      throw error;
    }
  }

  /** The store was asked for these ids: it has taken the claim over, or there was none. */
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
