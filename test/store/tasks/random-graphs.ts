import fc from 'fast-check';
import type { ModelNode } from './graph-model.ts';

const policy = fc.constantFrom('fail', 'retry', 'skip', 'retry', 'skip');

/** Shapes by the number of nodes: which earlier nodes node `n` depends on. */
const shapes: Readonly<Record<string, (n: number, dice: readonly number[]) => readonly number[]>> = {
  chain: (n) => (n === 0 ? [] : [n - 1]),
  fan: (n) => (n === 0 ? [] : [0]),
  join: (n, dice) => (n === dice.length - 1 ? Array.from({ length: n }, (_, index) => index) : []),
  /** Layers of one and of two in turn. */
  diamonds: (n) => {
    const [layer, place] = [Math.floor(n / 3) * 3, n % 3];
    if (place === 0) return n === 0 ? [] : [n - 2, n - 1];
    return [layer];
  },
  random: (n, dice) => {
    const own = dice[n] ?? 0;
    const count = n === 0 ? 0 : own % 4;
    return Array.from({ length: count }, (_, k) => Math.floor((own * (k + 7)) / 11) % n);
  },
  loose: () => [],
};

/** Random graphs without cycles, of at most `most` nodes. A few name a dependency twice. */
export function graphs(most: number): fc.Arbitrary<readonly ModelNode[]> {
  return fc
    .tuple(
      fc.constantFrom(...Object.keys(shapes)),
      fc.array(fc.tuple(fc.nat(1_000_000), policy), { minLength: 1, maxLength: most }),
    )
    .map(([shape, rolls]) => {
      const dice = rolls.map(([roll]) => roll);
      return rolls.map(([, onFailure], n) => ({
        id: `n${n}`,
        dependsOn: (shapes[shape]?.(n, dice) ?? []).map((index) => `n${index}`),
        onFailure,
      }));
    });
}
