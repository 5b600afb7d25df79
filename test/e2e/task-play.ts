/** What a scripted model reads and says when it coordinates a diamond of subtasks. */
import type { Turn } from '../platforms/anthropic/turn.ts';
import type { WireBody } from '../platforms/anthropic/wire.ts';
import { readStore } from './conservation.ts';
import { isSubagent, shows } from './subagent-play.ts';

/** `left` and `right` build on `top`, and `bottom` on both. */
export const diamond = ['top', 'left', 'right', 'bottom'] as const;
export type DiamondNode = (typeof diamond)[number];

const edges = { top: [], left: ['top'], right: ['top'], bottom: ['left', 'right'] } as const;

/** The call that delegates the diamond. */
export const delegatesDiamond: Turn = {
  toolCalls: [
    {
      name: 'delegate',
      input: {
        title: 'the diamond',
        subtasks: diamond.map((id) => ({
          ...{ id, agent: 'main', instructions: `Do the ${id} part.`, dependsOn: edges[id] },
        })),
      },
    },
  ],
};

/** Returns the subtask that the request's peer works on; undefined if it is the coordinator's. */
export function nodeOf(body: WireBody): DiamondNode | undefined {
  if (!isSubagent(body)) return undefined;
  return diamond.find((id) => shows(body, `Do the ${id} part.`));
}

/** What a peer says, which proves what it was given. */
export function resultOf(id: DiamondNode, body: WireBody): string {
  const missing = edges[id].filter((from) => !shows(body, `The ${from} part`));
  return `The ${id} part${missing.length === 0 ? '' : ` without ${missing.join(' and ')}`}.`;
}

/** Says whether the request is the coordinator's turn for the answer. */
export function isSynthesis(body: WireBody): boolean {
  return shows(body, 'all 4 subtasks have ended');
}

/** Returns how every subtask has ended, and how often it was dispatched and replied to. */
export function subtaskEnds(dataDir: string) {
  return readStore(
    dataDir,
    `select subtasks.id, subtasks.state, tries,
       (select count(*) from children where label = subtasks.id and mode = 'task') as peers,
       (select count(*) from taskMessages where subtaskId = subtasks.id and type = 'reply') as replies
     from subtasks order by ordinal`,
  );
}

/** Every subtask of a diamond done once. */
export const diamondDone = diamond.map((id) => ({ id, state: 'done', tries: 1, peers: 1, replies: 1 }));

/** Returns how every task has ended. */
export function taskEnds(dataDir: string) {
  return readStore(dataDir, 'select state, told, rounds, isUnsettled from tasks');
}
