local function operation()
