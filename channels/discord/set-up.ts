import type { ChannelSetUp } from '#contracts/channel.ts';

export const setUp: ChannelSetUp = {
  label: 'Discord',
  hint: 'a bot token and an invitation',
  how: 'At https://discord.com/developers create an application. On its Bot page switch Message Content Intent on and copy the token.',
  fields: [{ variable: 'DISCORD_BOT_TOKEN', question: 'Token of the bot', isSecret: true }],
  ownerId: { example: '80351110224678912', form: /^\d{15,22}$/ },
};
