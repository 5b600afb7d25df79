/**
 * The kind of work in a lane: from people, from a sub-agent (by its depth), from a schedule, or upkeep. Each class has
 * its own slots and BullMQ queue, so that none holds up another. Names must not contain a colon (BullMQ).
 */
const laneClasses = ['main', 'sub-1', 'sub-2', 'sub-3', 'sub-4', 'sub-5', 'schedule', 'background'] as const;

/** The name of a lane class; each class has its own slots and queue. */
export type LaneClass = (typeof laneClasses)[number];

/** Whether a stored or received text names a class. */
export function isLaneClass(name: string): name is LaneClass {
  return laneClasses.some((known) => known === name);
}
