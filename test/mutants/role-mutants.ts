import type { Mutant } from './mutants.ts';

const registry = 'test/roles/process-registry.test.ts';
const roster = 'test/channel-host/channel-registry.test.ts';
const reload = 'test/cli/reload.test.ts';

/** Broken variants of several processes that share a folder or a database. */
export const roleMutants: readonly Mutant[] = [
  {
    name: 'a standby gateway isn’t told to reload',
    invariant: 'parley reload reaches every process, whatever its role',
    edit: { in: 'notifyOthers', find: 'pid !== asked', replace: `pid !== asked && role === 'worker'` },
    also: [{ in: 'notifyOthers', find: '({ pid }) =>', replace: '({ pid, role }) =>' }],
    test: { file: reload, name: 'tells every other process, whatever its role' },
  },
  {
    name: 'a reload ends what runs in a terminal',
    invariant: 'a reload ends no process',
    edit: { in: 'tell', find: 'kill(pid, reloadSignal)', replace: `kill(pid, 'SIGHUP')` },
    test: { file: reload, name: 'tells every other process, whatever its role' },
  },
  {
    name: 'bindings lead to an agent that isn’t running yet',
    invariant: 'a conversation is answered by the agent that it is bound to, or as before',
    edit: {
      in: 'withBindings',
      find: 'written.bindings.every(isKnown) ? written',
      replace: 'written.bindings.every(isKnown) || written.bindings ? written',
    },
    test: { file: reload, name: 'keeps the earlier bindings until an agent' },
  },
  {
    name: 'a workspace may hold the data folder',
    invariant: 'the data folder is out of reach of the tools',
    edit: { in: 'ownPaths', find: '[dataDir, ...(configPath', replace: '[...(configPath' },
    test: { file: 'test/config/load-config.test.ts', name: 'refuses the workspace' },
  },
  {
    name: 'a workspace’s disk is asked beyond all bounds',
    invariant: 'a drive that is gone holds up no start and no reload',
    edit: {
      in: 'resolveLinks',
      find: 'await disks.run(path, () => realpath(path))',
      replace: 'await realpath(path)',
    },
    test: { file: 'test/config/load-config.test.ts', name: 'holds its settings' },
  },
  {
    name: 'an alert outlives its subject',
    invariant: 'no alert stays open about a part that the settings no longer have',
    edit: {
      in: 'staleAlerts',
      find: '!providers.has(subject) && !keys.has(subject) && !names.has(subject)',
      replace: 'false',
    },
    test: { file: 'test/roles/stale-alerts.test.ts', name: 'ends the alerts' },
  },
  {
    name: 'files are kept for as long as by default',
    invariant: 'the gateway keeps files of messages for as long as the settings say',
    edit: { in: 'wireMedia', find: 'config.media.keepDays * dayMs', replace: '30 * dayMs' },
    test: { file: 'test/e2e/stable-prefix.test.ts', name: 'stays the same' },
  },
  {
    name: 'the living are buried',
    invariant: 'only the leases of a process that has ended are void before their time',
    edit: {
      in: 'deadBoots',
      find: 'return boots.filter((id) => !files.isAlive(nameOf(id)));',
      replace: 'return boots.filter((id) => nameOf(id) !== files.name);',
    },
    test: { file: registry, name: 'are buried when they have died, and left alone while they live' },
    isSample: true,
  },
  {
    name: 'the journals of the dead unread',
    invariant: 'after a kill only what had begun is unknown',
    edit: {
      in: 'registerProcess',
      find: 'await store.write(voidProcesses, { ids, sends: await settledSends(deps, names) });',
      replace: 'await store.write(voidProcesses, { ids, sends: [] });',
    },
    test: { file: registry, name: 'sends what had not begun' },
  },
  {
    name: 'the previews that only a journal knew forgotten',
    invariant: 'a half answer never stays beside the whole one',
    edit: {
      in: 'settledSends',
      find: "await store.write(recordPreview, { kind: 'sent', ...preview });",
      replace: 'void [recordPreview, preview];',
    },
    test: { file: registry, name: 'leave the previews that they had shown to the next one' },
  },
  {
    name: 'the page delivered to by anybody',
    invariant: 'a session-bound channel is delivered to where its clients are',
    edit: {
      in: 'createChannelRegistry',
      find: '(isHeld(route) || !channel.definition.capabilities.isSessionBound)',
      replace: 'channel.adapter',
    },
    test: { file: roster, name: 'serves a channel whose clients are connected to one process only there' },
  },
  {
    name: 'a folder shared with one who has it alone',
    invariant: 'an `all` process has its folder alone',
    edit: {
      in: 'openInfrastructure',
      find: "config.role === 'all' ? 'exclusive' : 'shared'",
      replace: "config.role === 'all' ? 'shared' : 'shared'",
    },
    test: {
      file: 'test/e2e/roles.test.ts',
      name: 'is refused to a process that wants it alone, naming those who have it',
    },
  },
  {
    name: 'an alert told by a process that has no channel',
    invariant: 'an alert that counts as told reaches the owner where anything does',
    edit: { in: 'isUsable', find: "kind === 'on' || kind === 'standby'", replace: "kind === 'on'" },
    test: { file: 'test/channel-host/alert-reporter.test.ts', name: 'that stands by for another' },
  },
  {
    name: 'an alert told nowhere while its channel is away',
    invariant: 'an alert that counts as told reaches the owner where anything does',
    edit: { in: 'tell', find: 'awaited.length > 0', replace: 'awaited.length < 0' },
    test: { file: 'test/channel-host/alert-reporter.test.ts', name: 'told once a channel is there' },
  },
];
