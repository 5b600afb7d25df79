/** The process entry point: the lists of channels and plugins, and the command line. */
import type { ChannelEntry } from '#contracts/channel.ts';
import { channelId } from '#contracts/ids.ts';
import type { PluginDefinition } from '#contracts/plugin.ts';

const channels: readonly ChannelEntry[] = [
  {
    id: channelId('web'),
    localPeer: 'owner',
    load: async () => (await import('../channels/web/index.ts')).channel,
  },
  {
    id: channelId('terminal'),
    localPeer: 'owner',
    load: async () => (await import('../channels/terminal/index.ts')).channel,
  },
  {
    id: channelId('telegram'),
    needs: 'TELEGRAM_BOT_TOKEN',
    tools: ['poll', 'pin'],
    load: async () => (await import('../channels/telegram/index.ts')).channel,
    setUp: async () => (await import('../channels/telegram/set-up.ts')).setUp,
  },
  {
    id: channelId('discord'),
    needs: 'DISCORD_BOT_TOKEN',
    tools: ['poll', 'pin', 'thread'],
    load: async () => (await import('../channels/discord/index.ts')).channel,
    setUp: async () => (await import('../channels/discord/set-up.ts')).setUp,
  },
  {
    id: channelId('signal'),
    needs: 'SIGNAL_API_URL',
    load: async () => (await import('../channels/signal/index.ts')).channel,
    setUp: async () => (await import('../channels/signal/set-up.ts')).setUp,
  },
];

const plugins: readonly { readonly id: string; load(): Promise<PluginDefinition> }[] = [
  { id: 'files', load: async () => (await import('../plugins/files/index.ts')).plugin as PluginDefinition },
  { id: 'shell', load: async () => (await import('../plugins/shell/index.ts')).plugin as PluginDefinition },
  { id: 'web', load: async () => (await import('../plugins/web/index.ts')).plugin as PluginDefinition },
  {
    id: 'code_search',
    load: async () => (await import('../plugins/code-search/index.ts')).plugin as PluginDefinition,
  },
];

// The output's reader may exit early, as `head` does, or its file may be on a full disk: a gateway keeps running.
process.stderr.on('error', () => undefined);
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') return;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});

/** Resolves once the command has ended. */
export const ended = runCommand();

// In a function, because a bundle's chunks can't wait.
async function runCommand(): Promise<void> {
  const { runCommandLine } = await import('./cli/command-line.ts').catch(refuseMissingPackage);
  const code = await runCommandLine(process.argv.slice(2), {
    chatSocket: 'channels/terminal/terminal.sock',
    parts: { channels, plugins },
    start: async (role) => {
      const [{ runStart }, { startWithRetry: startPatiently }] = await Promise.all([
        import('./cli/start.ts'),
        import('./startup/start-with-retry.ts'),
      ]);
      return runStart({ channels, plugins, startGateway: startPatiently, ...(role && { role }) });
    },
  });
  // Unless a failed output has already set it.
  process.exitCode ||= code;
}

/** After an update, a package may be missing until the next install. */
function refuseMissingPackage(error: unknown): never {
  const isMissing =
    error instanceof Error && 'code' in error && /^(?:ERR_)?MODULE_NOT_FOUND$/.test(String(error.code));
  if (!isMissing) throw error;
  process.stderr.write(
    `A dependency is missing, as after an update: ${error.message.split('\n')[0]}\nInstall it: node scripts/bootstrap.mjs\n`,
  );
  process.exit(1);
}
