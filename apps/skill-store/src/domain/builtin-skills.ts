/** The skill that opens the settings tools to the run that views it. */
export const SETTINGS_SKILL = `---
name: ambit-settings
description: Read and change this agent's own settings. View this when somebody asks you to change how you work, or what you may do.
---

# Changing your own settings

After you have viewed this skill, two more tools are there from your next step on:

- \`settings_read\` answers your settings: instructions, model, permission mode, what you may use, limits.
- \`settings_write\` changes some of them. Each call waits for a person's approval of exactly this change.

## How to

1. Call \`settings_read\` and look at what is there.
2. Say in words what you are going to change and why.
3. Call \`settings_write\` once with only the settings that change:
   - \`instructions\`: the whole new text; what is not in it is gone
   - \`model\`: the name of another model
   - \`whileBusy\`: \`queue\`, \`refuse\` or \`steer\` messages that come while you work
   - \`mode\`: a narrower permission mode (\`default\` is the narrowest)
   - \`disableTools\`: names of tools that you will do without
   - \`limits\`: lower \`runsAtOnce\`, \`callsPerRun\` or \`callsPerMinute\`
4. A change holds from the next run on. Another change is another call, and another approval.

Nothing here can allow you more than you have: a wider mode, other servers, skills or rules are an administrator's to give.
`;
