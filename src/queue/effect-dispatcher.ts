import type { Probe } from '#contracts/probe.ts';
import type { ChangedTask, Effects } from '../store/base/effects.ts';
import type { Reservation } from './lane-workers.ts';

/** Dispatches the effects of a commit: wakes, deliveries, cancels. The sweep would find all of them, too. */
export interface EffectDispatcher {
  /** Never waits, never throws. */
  dispatch(effects: Effects): void;
  /** Reserves at most `most` of this process's slots for lanes of the class that the next commit may make due. */
  reserve(laneClass: string, most: number): Reservation | undefined;
  /** Connects the stages that handle effects; called once, when all of them exist. */
  connect(handlers: EffectHandlers): void;
}

export type EffectHandlers = {
  cancel(runId: string, reason: string): void;
  wake(wake: Effects['wakes'][number]): void;
  deliver(conversationKey: string): void;
  fetch(inboxId: string): void;
  changed(laneKey: string): void;
  /** For metrics only: the sender has been notified, and the message has its outcome. */
  overflowed(overflow: Effects['overflows'][number]): void;
  gaveUp(run: Effects['gaveUp'][number]): void;
  /** A sub-agent has ended. */
  childEnded(id: string): void;
  sessionEnded(sessionId: string): void;
  taskChanged(task: ChangedTask): void;
  reserve(laneClass: string, most: number): Reservation | undefined;
};

/** Creates the dispatcher. The stages depend on each other in a cycle, which is tied here after construction. */
export function createEffectDispatcher(probe: Probe): EffectDispatcher {
  let handlers: EffectHandlers | undefined;
  return {
    connect: (all) => {
      handlers = all;
    },
    reserve: (laneClass, most) => handlers?.reserve(laneClass, most),
    dispatch: (effects) => {
      if (!handlers) return;
      if (effects.endedChildren.length > 0) probe.reach('child-finished');
      if (effects.stoppedChildren.length > 0) probe.reach('tree-stopped');
      for (const point of effects.taskPoints) probe.reach(point);
      for (const { runId, reason } of effects.cancels) handlers.cancel(runId, reason);
      for (const wake of effects.wakes) handlers.wake(wake);
      for (const conversationKey of effects.deliveries) handlers.deliver(conversationKey);
      for (const inboxId of effects.fetches) handlers.fetch(inboxId);
      for (const overflow of effects.overflows) handlers.overflowed(overflow);
      for (const run of effects.gaveUp) handlers.gaveUp(run);
      for (const id of effects.endedChildren) handlers.childEnded(id);
      for (const id of effects.endedSessions) handlers.sessionEnded(id);
      for (const task of effects.tasks) handlers.taskChanged(task);
      const woken = effects.wakes.map(({ laneKey }) => laneKey);
      const tasks = effects.tasks.map(({ laneKey }) => laneKey);
      const lanes = new Set([...woken, ...effects.arrivals, ...effects.changes, ...tasks]);
      for (const laneKey of lanes) handlers.changed(laneKey);
    },
  };
}
