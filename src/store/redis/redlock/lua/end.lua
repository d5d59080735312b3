end
local age, longest = age_ms(), longest_ms(LEASE)
return { age, longest, operation() }
