import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { agentId } from '#contracts/ids.ts';
import type { ChildRole } from '../../src/contracts/child.ts';
import {
  childRole,
  deniedToChildren,
  deniedToTheDeepest,
  mayUseTool,
  permittedTools,
  spawnableAgents,
  taskTools,
  unknownTools,
} from '../../src/subagents/tool-policy.ts';
import { aTool } from '../agent/support/builders.ts';

const names = [...deniedToChildren, ...deniedToTheDeepest, ...taskTools, 'write', 'bash', 'message'];
const toolNames = fc.subarray(names);
const lists = fc.record({ allow: toolNames, deny: toolNames }, { requiredKeys: ['deny'] });
const profiles = fc.constantFrom('main', 'task');
const everything = { deny: [] };

/** Returns the role of a sub-agent at the end of a line of spawns, each with its profile. */
function roleAfter(line: readonly ('main' | 'task')[], maxSpawnDepth: number): ChildRole {
  let role: ChildRole | undefined;
  for (const profile of line) role = childRole({ parent: role, profile, maxSpawnDepth });
  if (!role) throw new Error('test error: an empty line');
  return role;
}

const usable = (role: ChildRole | undefined, agent: { allow?: readonly string[]; deny: readonly string[] }) =>
  names.filter((name) => mayUseTool(name, role, agent));

describe('the tools of a sub-agent', () => {
  it('never gives a sub-agent more tools than its parent has, whatever profile was requested', () => {
    fc.assert(
      fc.property(
        fc.array(profiles, { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 1, max: 5 }),
        (line, depth) => {
          const role = roleAfter(line, depth);
          const parent = line.length > 1 ? roleAfter(line.slice(0, -1), depth) : undefined;
          const above = new Set(usable(parent, everything));
          expect(usable(role, everything).filter((name) => !above.has(name))).toEqual([]);
          expect(role.depth).toBe(line.length);
        },
      ),
    );
  });

  it('withholds the tools denied to every sub-agent, and at the deepest level those for sub-agents', () => {
    fc.assert(
      fc.property(
        fc.array(profiles, { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 1, max: 5 }),
        lists,
        (line, depth, agent) => {
          const denied = [...deniedToChildren, ...(line.length >= depth ? deniedToTheDeepest : [])];
          const role = roleAfter(line, depth);
          expect(usable(role, agent).filter((name) => denied.includes(name))).toEqual([]);
        },
      ),
    );
  });

  it("only ever removes tools by an agent's allow and deny lists", () => {
    fc.assert(
      fc.property(fc.option(profiles, { nil: undefined }), lists, (profile, agent) => {
        const role = profile && roleAfter([profile], 2);
        const all = usable(role, everything);
        const allowed = agent.allow ?? names;
        const expected = all.filter((name) => allowed.includes(name) && !agent.deny.includes(name));
        expect(usable(role, agent)).toEqual(expected);
      }),
    );
  });

  it('gives no tools to a run that titles or summarizes a conversation', () => {
    const tools = names.map((name) => aTool(name));
    for (const type of ['title', 'summarizer'] as const)
      expect(permittedTools(tools, { type }, { tools: everything })).toEqual([]);
    expect(permittedTools(tools, { type: 'main' }, { tools: everything })).toEqual(tools);
  });

  it('gives read-only tools to the task profile', () => {
    const tools = names.map((name) => aTool(name));
    const permitted = permittedTools(tools, { role: roleAfter(['task'], 3) }, { tools: everything });
    expect(permitted.map(({ name }) => name)).toEqual(taskTools);
  });

  it.each(['sessions_spawn', 'delegate', 'tasks'])(
    'lets a sub-agent spawn and delegate one level above the deepest, and not at it: %s',
    (name) => {
      expect(mayUseTool(name, roleAfter(['main'], 2), everything)).toBe(true);
      expect(mayUseTool(name, roleAfter(['main', 'main'], 2), everything)).toBe(false);
      expect(mayUseTool(name, undefined, everything)).toBe(true);
    },
  );
});

describe('agents that may be started', () => {
  const agents = ['main', 'clerk', 'cook'].map((id) => ({ id: agentId(id) }));
  it.each([
    ['itself only, by default', undefined, ['main']],
    ['those named', ['cook'], ['cook']],
    ['all, by *', ['*'], ['main', 'clerk', 'cook']],
    ['none, by an empty list', [], []],
    ['only configured ones', ['gone', 'clerk'], ['clerk']],
  ])('lets an agent start %s', (_, allowAgents, expected) => {
    const agent = { id: agentId('main'), subagents: allowAgents === undefined ? {} : { allowAgents } };
    expect(spawnableAgents(agent, agents)).toEqual(expected);
  });
});

describe('denied tools', () => {
  it("reports denied tools that don't exist, with the name that was probably meant", () => {
    const agents = [
      { id: agentId('main'), tools: { deny: ['writ', 'read'] } },
      { id: agentId('clerk'), tools: { allow: ['message'], deny: ['browse_web'] } },
    ];
    expect(unknownTools(agents, ['read', 'write', 'message'])).toEqual([
      { agent: 'main', tool: 'writ', meant: 'write' },
      { agent: 'clerk', tool: 'browse_web' },
    ]);
  });
});
