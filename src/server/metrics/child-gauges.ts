import { Gauge, type Registry } from 'prom-client';
import type { OpenCounts } from '../../store/reads/read-open-counts.ts';
import type { Tally } from './tally.ts';

/** Counts of live children by kind, and of ended ones by `<status>:<depth>`. */
export type CountedChildren = Pick<OpenCounts, 'children' | 'orphans'> & { readonly ended: Tally };

/** Registers the metrics of sub-agents. Pass `show` undefined while the store is unreachable. */
export function createChildGauges(registry: Registry): { show(counted: CountedChildren | undefined): void } {
  const registers = [registry];
  const live = new Gauge({
    name: 'parley_children',
    help: 'Sub-agents that have not ended, by state, depth and class.',
    labelNames: ['state', 'depth', 'class'],
    registers,
  });
  const ended = new Gauge({
    name: 'parley_children_ended',
    help: 'Sub-agents that have ended, by status and depth.',
    labelNames: ['status', 'depth'],
    registers,
  });
  const orphans = new Gauge({
    name: 'parley_children_orphaned',
    help: 'Live sub-agents whose top-level run and lane are gone: must be 0.',
    registers,
  });
  return {
    show: (counted) => {
      for (const gauge of [live, ended, orphans]) gauge.reset();
      if (counted === undefined) return orphans.remove();
      orphans.set(counted.orphans);
      for (const state of ['queued', 'running']) live.set({ state, depth: 1, class: 'sub-1' }, 0);
      for (const { count, ...kind } of counted.children) live.set(kind, count);
      for (const [place, count] of Object.entries(counted.ended)) {
        const [status = '', depth = ''] = place.split(':');
        if (place !== 'live') ended.set({ status, depth }, count);
      }
    },
  };
}
